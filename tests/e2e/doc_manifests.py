"""What can be said of manifests for a cluster where there is none: that they are whole, fit together, and that an API server takes what it knows.

usage: doc_manifests.py FOLDER|FILE [kubectl arguments]      (a folder is a kustomization)
"""

import json
import os
import subprocess
import sys

import yaml


def kubectl(*words, stdin=None):
    done = subprocess.run(["kubectl", *words], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("kubectl %s: %s" % (" ".join(words), done.stderr))
    return done.stdout


def read(path):
    if os.path.isdir(path):
        return kubectl("kustomize", path)
    with open(path, encoding="utf-8") as file:
        return file.read()


def need(condition, what):
    if not condition:
        sys.exit("doc_manifests: " + what)


def check_parts(objects):
    """What only a whole cluster would find: names that lead nowhere."""
    names = {(item["kind"], item["metadata"]["name"]) for item in objects}
    need(len(names) == len(objects), "one of them is there twice")
    for item in objects:
        who = "%s %s" % (item["kind"], item["metadata"]["name"])
        if item["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            need((item["roleRef"]["kind"], item["roleRef"]["name"]) in names, who + ": there is no such role")
            need(all((subject["kind"], subject["name"]) in names for subject in item["subjects"]), who + ": there is no such subject")
        if item["kind"] in ("Role", "ClusterRole"):
            need(all(rule["apiGroups"] and rule["resources"] and rule["verbs"] for rule in item["rules"]), who + ": an empty rule")
        if item["kind"] == "Deployment":
            template = item["spec"]["template"]
            need(item["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items(), who + ": selects others")
            account = template["spec"].get("serviceAccountName")
            need(account is None or ("ServiceAccount", account) in names, who + ": there is no such service account")
            ports = {port["name"] for container in template["spec"]["containers"] for port in container.get("ports", [])}
            for container in template["spec"]["containers"]:
                for probe in ("livenessProbe", "readinessProbe"):
                    need(probe not in container or container[probe]["httpGet"]["port"] in ports, who + ": probes no port of its own")


def main():
    path, flags = sys.argv[1], sys.argv[2:]
    objects = [item for item in yaml.safe_load_all(read(path)) if item]
    for item in objects:
        need(item.get("apiVersion") and item.get("kind") and item.get("metadata", {}).get("name"), "an object without kind or name")
    check_parts(objects)
    served = {line.split()[-1] for line in kubectl("api-resources", "--no-headers").splitlines()}
    known = [item for item in objects if item["kind"] in served]
    # The namespace may be among them; nothing is really made.
    for item in known:
        item["metadata"].pop("namespace", None)
    kubectl("apply", "--dry-run=server", *flags, "-f", "-",
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": known}))
    print("%d objects fit together, of which an API server takes %d" % (len(objects), len(known)))


if __name__ == "__main__":
    main()
