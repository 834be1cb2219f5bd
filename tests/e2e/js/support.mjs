// What the scripts of the JavaScript client's test share. Each is run with a kubeconfig and a namespace of its own.
import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

export const [kubeconfigPath, namespace] = process.argv.slice(2);

export function loadConfig() {
    const config = new k8s.KubeConfig();
    config.loadFromFile(kubeconfigPath);
    return config;
}

// The same server, with these credentials and no others.
export function configFor(user, cluster = loadConfig().getCurrentCluster()) {
    const config = new k8s.KubeConfig();
    config.loadFromClusterAndUser(cluster, { name: 'it', ...user });
    return config;
}

export const core = loadConfig().makeApiClient(k8s.CoreV1Api);

export function configMap(name, data, labels) {
    return { metadata: { name, labels }, data };
}

// A pod that runs a shell script.
export function shellPod(name, script, spec = {}) {
    return {
        metadata: { name },
        spec: {
            containers: [{ name: 'main', image: 'none', command: ['/bin/sh', '-c', script] }],
            terminationGracePeriodSeconds: 2,
            ...spec,
        },
    };
}

// That the call fails with this Status; returns it.
export async function fails(code, reason, call) {
    const error = await call.then(
        () => assert.fail(`expected ${code} ${reason}, but it succeeded`),
        (failure) => failure,
    );
    assert.equal(error.code, code, String(error));
    const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
    assert.equal(status.kind, 'Status');
    assert.equal(status.status, 'Failure');
    assert.equal(status.code, code);
    assert.equal(status.reason, reason, status.message);
    return status;
}

export async function eventually(condition, what, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
        const result = await condition();
        if (result) return result;
        if (Date.now() > end) assert.fail(`waited in vain for ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}
