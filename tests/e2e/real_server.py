"""A real kube-apiserver on an etcd of its own: what our API server is held to, where there is one.

It has no nodes, no scheduler and no controllers, so it proves what an API server alone does.
"""

import base64
import json
import os
import shutil
import socket
import subprocess

from cluster import Cluster, environment

TOKEN = "the-token-of-tests"


def assets():
    """The folder with kube-apiserver (envtest's convention), or None."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return folder if folder and os.path.exists(os.path.join(folder, "kube-apiserver")) else None


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class RealServer(Cluster):
    runs_pods = False

    def __init__(self, *_, **kwargs):
        super().__init__(None, **kwargs)
        self.etcd = None
        self.port = free_port()

    def path(self, name):
        return os.path.join(self.home, name)

    def spawn(self, *command):
        with open(self.path("test-out"), "ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment())

    def start(self):
        if self.etcd is None:
            self.make_access()
            self.start_etcd()
        self.process = self.spawn(
            os.path.join(assets(), "kube-apiserver"), "--etcd-servers", self.etcd_url, "--bind-address", "127.0.0.1",
            "--secure-port", str(self.port), "--tls-cert-file", self.path("server.crt"),
            "--tls-private-key-file", self.path("server.key"), "--client-ca-file", self.path("ca.crt"),
            "--token-auth-file", self.path("tokens.csv"), "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", self.path("sa.key"), "--service-account-signing-key-file", self.path("sa.key"),
            "--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount",
            "--authorization-mode", "RBAC", "--anonymous-auth=false")
        self.wait(self.is_ready, "kube-apiserver to be ready")
        self.wait(lambda: self.kubectl("get", "namespace", "default", check=False).returncode == 0, "its namespaces")
        return self

    def start_etcd(self):
        client, peer = free_port(), free_port()
        self.etcd_url = "http://127.0.0.1:%d" % client
        etcd = os.path.join(assets(), "etcd")
        self.etcd = self.spawn(
            etcd if os.path.exists(etcd) else "etcd", "--data-dir", self.path("etcd"), "--logger", "zap",
            "--log-level", "error", "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
            "--listen-peer-urls", "http://127.0.0.1:%d" % peer,
            "--initial-advertise-peer-urls", "http://127.0.0.1:%d" % peer,
            "--initial-cluster", "default=http://127.0.0.1:%d" % peer)

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.home, check=True, capture_output=True)

    def sign(self, name, subject, extensions):
        """A key, and a certificate for it from our authority."""
        with open(self.path(name + ".ext"), "w", encoding="ascii") as file:
            file.write(extensions)
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                     "-out", name + ".crt", "-days", "2", "-extfile", name + ".ext")

    def make_access(self):
        """Certificates, a token and a kubeconfig with both, as `trainyard up` makes them."""
        self.openssl("genrsa", "-out", "sa.key", "2048")
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test",
                     "-days", "2")
        self.sign("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        self.sign("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth\n")
        with open(self.path("tokens.csv"), "w", encoding="ascii") as file:
            file.write(TOKEN + ",admin,admin,\"system:masters\"\n")

        def data(name):
            with open(self.path(name), "rb") as file:
                return base64.b64encode(file.read()).decode()
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": {"server": "https://127.0.0.1:%d" % self.port,
                                                      "certificate-authority-data": data("ca.crt")}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin", "namespace": "default"}}],
            "users": [{"name": "admin", "user": {"client-certificate-data": data("admin.crt"),
                                                 "client-key-data": data("admin.key"), "token": TOKEN}}]}
        with open(self.kubeconfig, "w", encoding="ascii") as file:
            json.dump(config, file)

    def remove(self):
        for process in (self.process, self.etcd):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
