// Pods and their logs: only where there is a node.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import test from 'node:test';
import * as k8s from '@kubernetes/client-node';
import { core, eventually, loadConfig, namespace, shellPod } from './support.mjs';

const read = (name) => core.readNamespacedPod({ name, namespace });
const run = (name, script, spec) => core.createNamespacedPod({ namespace, body: shellPod(name, script, spec) });

// What the log says until `enough` of it is there.
async function follow(name, enough, options = {}) {
    const stream = new PassThrough();
    let text = '';
    stream.on('data', (piece) => (text += piece));
    const ended = new Promise((resolve) => stream.on('end', resolve));
    const controller = await new k8s.Log(loadConfig()).log(namespace, name, 'main', stream, { follow: true, ...options });
    await eventually(() => enough(text), `the log of ${name}, which says ${text}`);
    return { text: () => text, ended, stop: () => controller.abort() };
}

test('a pod runs to its end', async () => {
    await run('ends', 'exit 5', { restartPolicy: 'Never' });
    const pod = await eventually(async () => {
        const now = await read('ends');
        return now.status.phase === 'Failed' && now;
    }, 'the pod to fail');
    assert.equal(pod.status.containerStatuses[0].state.terminated.exitCode, 5);
});

test('a log is followed while it grows, and ends with the pod', async () => {
    await run('grows', 'for i in 1 2 3; do echo line $i; sleep 0.1; done; sleep 0.5; echo last', { restartPolicy: 'Never' });
    await eventually(async () => (await read('grows')).status.phase === 'Running', 'the pod to run');
    const log = await follow('grows', (text) => text.includes('line 1'));
    await log.ended;
    assert.equal(log.text(), 'line 1\nline 2\nline 3\nlast\n');
    const tail = await core.readNamespacedPodLog({ name: 'grows', namespace, tailLines: 2 });
    assert.equal(tail, 'line 3\nlast\n');
});

test('whoever stops following does not disturb the pod', async () => {
    await run('calm', 'i=0; while :; do echo tick $i; i=$((i+1)); sleep 0.02; done');
    await eventually(async () => (await read('calm')).status.phase === 'Running', 'the pod to run');
    const first = await follow('calm', (text) => text.includes('tick 3'));
    first.stop();
    const second = await follow('calm', (text) => text.includes('tick 20'), { tailLines: 1 });
    second.stop();
    assert.equal((await read('calm')).status.containerStatuses[0].restartCount, 0);
});

test('the log of a pod that is not there', async () => {
    const log = new k8s.Log(loadConfig()).log(namespace, 'no-such-pod', 'main', new PassThrough(), {});
    await assert.rejects(log, { code: 404 });
});

test('a deleted pod goes', async () => {
    await run('goes', 'sleep 1000');
    await eventually(async () => (await read('goes')).status.phase === 'Running', 'the pod to run');
    await core.deleteNamespacedPod({ name: 'goes', namespace });
    await eventually(() => read('goes').then(() => false, (error) => error.code === 404), 'the pod to go');
});
