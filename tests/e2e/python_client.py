"""The official Python client on a cluster of a test."""

import base64

try:
    from kubernetes import client, config
    from kubernetes.client.rest import ApiException
except ImportError as missing:
    raise SystemExit("the Python client is missing, Debian's python3-kubernetes: %s" % missing)

from cases import ClusterCase

NOBODY = {"scheduler_name": "nobody"}  # a pod that is stored and not run


def connect(cluster):
    """As a user does: with the kubeconfig."""
    return config.new_client_from_config(config_file=cluster.kubeconfig)


def connect_with(server, ca, **user):
    """With these credentials and no others."""
    loaded = client.Configuration()
    config.load_kube_config_from_dict({
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": user}]}, client_configuration=loaded)
    loaded.retries = False
    return client.ApiClient(loaded)


def certificate(certificate_pem, key_pem):
    return {"client-certificate-data": base64.b64encode(certificate_pem).decode(),
            "client-key-data": base64.b64encode(key_pem).decode()}


def config_map(name, labels=None, finalizers=None, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels, finalizers=finalizers), data=data)


def pod(name, command=("sleep", "1000"), labels=None, **spec):
    """A pod with one container; `scheduler_name` keeps it from being run."""
    container = client.V1Container(name="main", image="none", command=list(command))
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels=labels),
                        spec=client.V1PodSpec(containers=[container], termination_grace_period_seconds=2, **spec))


class PythonCase(ClusterCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api = connect(cls.cluster)
        cls.addClassCleanup(cls.api.close)
        cls.core = client.CoreV1Api(cls.api)

    def patching(self, content_type):
        """The core API with every body sent as this type."""
        api = connect(self.cluster)
        self.addCleanup(api.close)
        api.set_default_header("Content-Type", content_type)
        return client.CoreV1Api(api)

    def fails(self, code, reason, call, *args, **kwargs):
        with self.assertRaises(ApiException) as raised:
            call(*args, **kwargs)
        self.assertEqual(raised.exception.status, code, raised.exception.body)
        return self.assert_status(raised.exception.body, code, reason)

    def create(self, name, **kwargs):
        return self.core.create_namespaced_config_map(self.namespace, config_map(name, **kwargs))

    def read(self, name):
        return self.core.read_namespaced_config_map(name, self.namespace)
