// Who gets in.
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import * as k8s from '@kubernetes/client-node';
import { configFor, loadConfig } from './support.mjs';

const user = loadConfig().getCurrentUser();
const cluster = loadConfig().getCurrentCluster();
const list = (config) => config.makeApiClient(k8s.CoreV1Api).listNamespace();

test('the kubeconfig gets in', async () => {
    const names = (await list(loadConfig())).items.map((item) => item.metadata.name);
    assert.ok(names.includes('default'));
});

test('the token alone gets in', async () => {
    await list(configFor({ token: user.token }));
});

test('the certificate alone gets in', async () => {
    await list(configFor({ certData: user.certData, keyData: user.keyData }));
});

test('a wrong token does not', async () => {
    await assert.rejects(list(configFor({ token: `${user.token}x` })), { code: 401 });
});

test('nobody does not', async () => {
    await assert.rejects(list(configFor({})), { code: 401 });
});

test('the health checks say so to the client too', async () => {
    assert.equal(await new k8s.Health(loadConfig()).readyz({}), true);
    assert.equal(await new k8s.Health(loadConfig()).livez({}), true);
});

test('a server that nobody vouches for is not trusted', async () => {
    const stranger = { ...cluster, caData: undefined };
    await assert.rejects(list(configFor({ token: user.token }, stranger)), /self.signed certificate|unable to/);
});

test('plain HTTP is answered in plain HTTP, and gets nothing', async () => {
    const { hostname, port } = new URL(cluster.server);
    const answer = await new Promise((resolve, reject) => {
        http.get({ hostname, port, path: '/api', headers: { Authorization: `Bearer ${user.token}` } }, resolve).on('error', reject);
    });
    answer.setEncoding('utf8');
    let text = '';
    for await (const piece of answer) text += piece;
    assert.equal(answer.statusCode, 400);
    assert.match(text, /HTTPS server/);
    await assert.rejects(list(configFor({ token: user.token }, { ...cluster, server: cluster.server.replace('https', 'http') })), (error) => {
        assert.notEqual(error.code, 200);
        return true;
    });
});
