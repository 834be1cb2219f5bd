"""Jobs of any kind for tests: all that happens to them in a namespace, and the rules that always hold."""

import collections
import datetime
import http.client
import json
import os
import shlex
import shutil
import tempfile
import threading
import time

from cases import ClusterCase, eventually
from cluster import PATIENCE
from wire import Wire

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOREVER = "exec sleep 1000"  # dies at SIGTERM
SPEC_INVALID = "SpecInvalid"  # the condition that is not a state


def states(job):
    """The conditions that hold. Beside another, Created only says that a job of v1 was accepted."""
    held = [c for c in job.get("status", {}).get("conditions", []) if c["status"] == "True" and c["type"] != SPEC_INVALID] if job else []
    return [c for c in held if c["type"] != "Created"] or held


def current(job):
    """The condition that holds, or None."""
    held = states(job)
    return held[0] if held else None


def version(thing):
    return int(thing["metadata"]["resourceVersion"])


def owner(thing):
    """The uid of the controller of an object, or None."""
    return next((o["uid"] for o in thing["metadata"].get("ownerReferences", []) if o.get("controller")), None)


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Watch(threading.Thread):
    """All changes of a namespace's objects of one resource, none left out when the server is killed and comes back.

    But by a server that `forgets`, as a real one does that is started again: of what was between, the outcome is taken.
    """

    def __init__(self, wire, path, forgets=False):
        super().__init__(daemon=True)
        self.wire, self.path, self.forgets = wire, path, forgets
        self.events = []  # (type, object)
        self.objects = {}  # by name, as they are now
        self.problem = None
        self.over = False
        self.resume = self.list()["metadata"]["resourceVersion"]
        self.start()

    def list(self):
        code, body = self.wire.ask("GET", self.path)
        listed = json.loads(body)
        if code != 200:
            raise AssertionError("%s: %s" % (self.path, listed))
        return listed

    def run(self):
        while not self.over and not self.problem:
            try:
                self.follow()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.02)  # the server is away

    def follow(self):
        connection = http.client.HTTPSConnection(self.wire.host, self.wire.port, timeout=300, context=self.wire.context())
        try:
            connection.request("GET", "%s?watch=true&resourceVersion=%s" % (self.path, self.resume),
                               headers={"Authorization": "Bearer " + self.wire.access["token"]})
            response = connection.getresponse()
            if response.status != 200:
                raise OSError("not ready yet: %d" % response.status)
            for line in response:
                event = json.loads(line)
                if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                    if self.forgets and event["object"].get("code") == 410:
                        self.catch_up()
                    else:
                        self.problem = event
                    return
                self.take(event["type"], event["object"])
        finally:
            connection.close()

    def catch_up(self):
        listed = self.list()
        there = {thing["metadata"]["name"]: thing for thing in listed["items"]}
        for name, known in list(self.objects.items()):
            if name not in there or there[name]["metadata"]["uid"] != known["metadata"]["uid"]:
                self.take("DELETED", known)
        for name, thing in sorted(there.items(), key=lambda item: version(item[1])):
            known = self.objects.get(name)
            if not known or version(known) != version(thing):
                self.take("MODIFIED" if known else "ADDED", thing)
        self.resume = listed["metadata"]["resourceVersion"]

    def take(self, what, thing):
        self.resume = thing["metadata"]["resourceVersion"]
        self.events.append((what, thing))
        if what == "DELETED":
            self.objects.pop(thing["metadata"]["name"], None)
        else:
            self.objects[thing["metadata"]["name"]] = thing

    def of(self, name):
        """What was told of this object, in order."""
        return [(what, thing) for what, thing in list(self.events) if thing["metadata"]["name"] == name]


class JobCase(ClusterCase):
    """Follows the class's namespace; after every test the rules are checked over all that has happened in it.

    A kind of jobs is a subclass with its particulars.
    """

    kind = short_name = path = None  # "TFJob", "tfj", and where a namespace's are listed
    seat_labels = None  # those of the type and the index
    finished = ()  # the states that nothing follows
    # Fields of the status: what counts by type, what counts all restarts, when the job ended; and of a condition: when it
    # was looked at.
    counters = restarts_field = end_field = looked_at = None

    pods_may_come_late = False  # a pod may still be made when its job has just ended: two operators disagree for a moment

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="trainyard-e2e.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.wire = Wire(cls.cluster)
        cls.known = []  # what was wrong after an earlier test
        cls.prepare()
        cls.jobs = cls.watch(cls.path)
        cls.pods = cls.watch("/api/v1/namespaces/%s/pods")
        cls.services = cls.watch("/api/v1/namespaces/%s/services")

    @classmethod
    def prepare(cls):
        """Before the watches begin."""

    @classmethod
    def watch(cls, path):
        made = Watch(cls.wire, path % cls.namespace, cls.on_real_server)
        cls.addClassCleanup(setattr, made, "over", True)
        return made

    def tearDown(self):
        for watch in (self.jobs, self.pods, self.services):
            self.assertIsNone(watch.problem)
        problems = broken_rules(self, self.versions(), list(self.pods.events))
        new = [problem for problem in problems if problem not in self.known]
        self.known.extend(new)
        self.assertEqual(new, [])

    def versions(self):
        """All versions of all jobs, in order."""
        return [job for _, job in list(self.jobs.events)]

    @staticmethod
    def broken_by_kind(job, before):
        """What is wrong with a job's status by the rules of its kind alone; `before` is the version before it, or None."""
        raise NotImplementedError

    # ---- what a user does

    def kubectl(self, *args, **kwargs):
        return self.cluster.kubectl(*args, "-n", self.namespace, **kwargs)

    def submit(self, *jobs):
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(jobs)}))

    def patch(self, name, spec, *flags):
        self.kubectl("patch", self.short_name, name, "--type", "merge", "-p", json.dumps({"spec": spec}), *flags)

    def logs(self, pod, container=None):
        container = container or pod["spec"]["containers"][0]["name"]
        return self.kubectl("logs", pod["metadata"]["name"], "-c", container, check=False).stdout

    def assert_refused(self, jobs):
        """That the server itself refuses each job, by the field that the message about it begins with."""
        for job, told in jobs:
            with self.subTest(job["metadata"]["name"]):
                done = self.kubectl("create", "-f", "-", stdin=json.dumps(job), check=False)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("is invalid: " + told.partition(":")[0], done.stderr)

    # ---- what is seen

    def get(self, path):
        code, body = self.wire.ask("GET", path)
        self.assertEqual(code, 200, body)
        return json.loads(body)

    @classmethod
    def seat(cls, thing):
        """"worker-0": which one of its job it is."""
        labels = thing["metadata"].get("labels", {})
        return "-".join(str(labels.get(label)) for label in cls.seat_labels)

    def job(self, name):
        return self.jobs.objects.get(name)

    def state(self, name):
        held = current(self.job(name))
        return held["type"] if held else None

    def message(self, name):
        held = current(self.job(name))
        return held["message"] if held else None

    def condition(self, name, kind):
        conditions = (self.job(name) or {}).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), None)

    def messages(self, name, kind):
        """All that this condition has ever said."""
        conditions = [c for _, job in self.jobs.of(name) for c in job.get("status", {}).get("conditions", [])]
        return [c["message"] for c in conditions if c["type"] == kind]

    def counts(self, name, kind):
        """What the status counts of a type: {"active": 1, ...}."""
        return (self.job(name) or {}).get("status", {}).get(self.counters, {}).get(kind, {})

    def await_state(self, name, state, within=PATIENCE):
        """The job in that state; fails at once if it has ended in another."""
        def reached():
            now = self.state(name)
            if now in self.finished and now != state:
                raise AssertionError("%s is %s and not %s: %s" % (name, now, state, self.message(name)))
            return now == state
        eventually(reached, "job %s to be %s" % (name, state), within)
        return self.job(name)

    def await_end(self, state, *names):
        return [self.await_state(name, state) for name in names]

    def mine(self, watch, name):
        """By seat, those that belong to the present job of this name."""
        job = self.job(name)
        things = list(watch.objects.values())
        return {self.seat(t): t for t in things if job and owner(t) == job["metadata"]["uid"]}

    def pods_of(self, name):
        return self.mine(self.pods, name)

    def services_of(self, name):
        return self.mine(self.services, name)

    def running(self, name):
        """The seats whose pods run and are not told to go."""
        return sorted(s for s, pod in self.pods_of(name).items()
                      if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"])

    def await_running(self, name, *seats):
        eventually(lambda: self.running(name) == sorted(seats), "%s to run in job %s" % (", ".join(seats), name))
        return self.pods_of(name)

    def await_another(self, name, which, before):
        """The running pod of this seat that is not the one before."""
        def found():
            pod = self.pods_of(name).get(which)
            return which in self.running(name) and pod["metadata"]["uid"] != before["metadata"]["uid"] and pod
        return eventually(found, "another pod for %s of job %s" % (which, name))

    def told(self, name):
        """(type, reason, message) of the events of a job."""
        listed = self.get("/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind=%s,involvedObject.name=%s"
                          % (self.namespace, self.kind, name))
        return [(e["type"], e["reason"], e["message"]) for e in listed["items"]]

    def await_told(self, name, kind, reason, part):
        def found():
            return any(t == kind and r == reason and part in m for t, r, m in self.told(name))
        eventually(found, "an event %s of job %s with '%s'" % (reason, name, part))

    # ---- scripts that tests hold by a string

    def gate(self, name):
        return os.path.join(self.folder, name + ".gate")

    def behind(self, name, then="exit 0"):
        """A script that waits for the gate of this name."""
        return "while [ ! -e %s ]; do sleep 0.05; done; %s" % (shlex.quote(self.gate(name)), then)

    def open_gate(self, name):
        with open(self.gate(name), "w", encoding="ascii"):
            pass

    def traced(self, name, script):
        """A script that leaves a line when it starts, and another if its predecessor still runs."""
        path = os.path.join(self.folder, name)
        return ("exec 9>>%s.$HOSTNAME.lock; flock -n 9 || echo $HOSTNAME >> %s.twice; echo $HOSTNAME >> %s.starts; %s"
                % (path, path, path, script))

    def lines(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="ascii") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def starts(self, name):
        """How often each pod of a traced job was started; fails if one was twice there at a time."""
        self.assertEqual(self.lines(name + ".twice"), [])
        return collections.Counter(self.lines(name + ".starts"))


# ---- rules

def broken_rules(case, jobs, pod_events):
    """What is wrong with a namespace's history: all versions of its jobs, and all changes of its pods."""
    problems, ends = [], {}
    histories = collections.OrderedDict()
    for job in jobs:
        if "status" in job:
            histories.setdefault(job["metadata"]["uid"], []).append(job)
    for uid, history in histories.items():
        problems += ["%s: %s" % (history[0]["metadata"]["name"], problem) for problem in broken_in_job(case, history)]
        finished = [job for job in history if (current(job) or {}).get("type") in case.finished]
        if finished:
            ends[uid] = version(finished[0])
    known = {job["metadata"]["uid"] for job in jobs}
    seats = {}  # (job, seat): names of the pods that sit there now
    for what, pod in pod_events:
        name, uid = pod["metadata"]["name"], owner(pod)
        if uid not in known:  # of a job of another kind
            continue
        sitting = seats.setdefault((uid, case.seat(pod)), set())
        if what == "ADDED" and uid in ends and version(pod) > ends[uid] and not case.pods_may_come_late:
            problems.append("pod %s was made after its job had ended" % name)
        if what == "DELETED":
            sitting.discard(name)
        else:
            sitting.add(name)
        if len(sitting) > 1:
            problems.append("two pods are %s: %s" % (case.seat(pod), sorted(sitting)))
    return problems


def broken_in_job(case, history):
    """What is wrong with the statuses of one job, in order."""
    problems, before = [], None
    for job in history:
        status = job["status"]
        conditions = status.get("conditions", [])
        held = [c["type"] for c in states(job)]
        if len(held) > 1:
            problems.append("is %s at once" % " and ".join(held))
        if len({c["type"] for c in conditions}) < len(conditions):
            problems.append("has a condition twice")
        if any(not c.get(key) for c in conditions for key in ("reason", "message", case.looked_at, "lastTransitionTime")):
            problems.append("has a condition that says nothing: %s" % conditions)
        finished = held and held[0] in case.finished
        end = status.get(case.end_field)
        if bool(finished) != (end is not None):
            problems.append("is %s with %s %s" % (held, case.end_field, end))
        if finished and end and seconds(status["startTime"]) > seconds(end):
            problems.append("ended before it started")
        if status.get("observedGeneration", 0) > job["metadata"]["generation"]:
            problems.append("has observed a generation that is not there yet")
        ready, wanted = map(int, status.get("ready", "0/0").split("/"))
        if ready > wanted:
            problems.append("has %d ready of %d" % (ready, wanted))
        if before is not None:
            was = current(before)
            if was and was["type"] in case.finished and (held != [was["type"]] or current(job) != was):
                problems.append("had ended as %s and then changed: %s" % (was, current(job)))
            if status.get(case.restarts_field, 0) < before["status"].get(case.restarts_field, 0):
                problems.append("forgot restarts: %s" % status.get("restarts"))
        problems += case.broken_by_kind(job, before)
        before = job
    return problems
