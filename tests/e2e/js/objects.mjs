// Objects: create, list, replace, patch, delete, and what fails.
import assert from 'node:assert/strict';
import test from 'node:test';
import * as k8s from '@kubernetes/client-node';
import { configMap, core, fails, loadConfig, namespace } from './support.mjs';

const create = (name, data, labels) =>
    core.createNamespacedConfigMap({ namespace, body: configMap(name, data, labels) });
const read = (name) => core.readNamespacedConfigMap({ name, namespace });

test('objects are created, listed, replaced and deleted', async () => {
    const made = await create('life', { a: '1' });
    assert.equal(made.kind, 'ConfigMap');
    assert.ok(made.metadata.uid);
    assert.ok(made.metadata.creationTimestamp instanceof Date);
    const replaced = await core.replaceNamespacedConfigMap({ name: 'life', namespace, body: { ...made, data: { b: '2' } } });
    assert.equal(replaced.metadata.uid, made.metadata.uid);
    assert.notEqual(replaced.metadata.resourceVersion, made.metadata.resourceVersion);
    const list = await core.listNamespacedConfigMap({ namespace, fieldSelector: 'metadata.name=life' });
    assert.deepEqual(list.items.map((item) => item.data), [{ b: '2' }]);
    assert.equal((await core.deleteNamespacedConfigMap({ name: 'life', namespace })).status, 'Success');
    const status = await fails(404, 'NotFound', read('life'));
    assert.equal(status.details.name, 'life');
    assert.equal(status.details.kind, 'configmaps');
});

test('patch of each type', async () => {
    const patch = (type, body, extra = {}) =>
        core.patchNamespacedConfigMap(
            { name: 'patched', namespace, body, ...extra },
            k8s.setHeaderOptions('Content-Type', type),
        );
    await create('patched', { a: '1', b: '1' });
    await patch(k8s.PatchStrategy.JsonPatch, [{ op: 'remove', path: '/data/a' }]);
    await patch(k8s.PatchStrategy.MergePatch, { data: { b: null, c: '3' } });
    await patch(k8s.PatchStrategy.StrategicMergePatch, { data: { d: '4' } });
    const applied = await patch(
        k8s.PatchStrategy.ServerSideApply,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { e: '5' } },
        { fieldManager: 'tests', force: true },
    );
    assert.deepEqual(applied.data, { c: '3', d: '4', e: '5' });
    assert.ok(applied.metadata.managedFields.some((entry) => entry.manager === 'tests' && entry.operation === 'Apply'));
    await fails(422, 'Invalid', patch(k8s.PatchStrategy.JsonPatch, [{ op: 'test', path: '/data/c', value: 'no' }]));
    await fails(415, 'UnsupportedMediaType', patch('application/x-no-patch', {}));
});

test('an object that has changed since is a conflict, and one that is there already too', async () => {
    const old = await create('stale', { a: '1' });
    await fails(409, 'AlreadyExists', create('stale', {}));
    await core.replaceNamespacedConfigMap({ name: 'stale', namespace, body: { ...old, data: { a: '2' } } });
    await fails(409, 'Conflict', core.replaceNamespacedConfigMap({ name: 'stale', namespace, body: { ...old, data: { a: '3' } } }));
    assert.deepEqual((await read('stale')).data, { a: '2' });
});

test('wrong values are refused field by field', async () => {
    const status = await fails(422, 'Invalid', create('Not_A_Name', {}));
    assert.deepEqual(status.details.causes.map((cause) => cause.field), ['metadata.name']);
});

test('lists come in pages', async () => {
    for (let i = 0; i < 5; ++i) await create(`page-${i}`, {}, { app: 'pages' });
    const names = [];
    let _continue;
    do {
        const page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=pages', limit: 2, _continue });
        assert.ok(page.items.length <= 2);
        names.push(...page.items.map((item) => item.metadata.name));
        _continue = page.metadata._continue;
    } while (_continue);
    assert.deepEqual(names, ['page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
});

test('secrets keep bytes', async () => {
    const body = { metadata: { name: 'bytes' }, data: { b: Buffer.from([0, 255, 10]).toString('base64') } };
    await core.createNamespacedSecret({ namespace, body });
    const secret = await core.readNamespacedSecret({ name: 'bytes', namespace });
    assert.deepEqual(Buffer.from(secret.data.b, 'base64'), Buffer.from([0, 255, 10]));
});

test('text of any alphabet survives', async () => {
    const data = { text: 'žluťoučký \u{1f682} "\\\n\t\u0001 列車' };
    await create('unicode', data);
    assert.deepEqual((await read('unicode')).data, data);
});

test('the client for objects of any kind', async () => {
    const any = k8s.KubernetesObjectApi.makeApiClient(loadConfig());
    const spec = { apiVersion: 'v1', kind: 'ConfigMap', ...configMap('any', { a: '1' }) };
    spec.metadata.namespace = namespace;
    await any.create(spec);
    await any.patch({ ...spec, data: { b: '2' } }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
    assert.deepEqual((await any.read(spec)).data, { a: '1', b: '2' });
    const list = await any.list('v1', 'ConfigMap', namespace, undefined, undefined, undefined, 'metadata.name=any');
    assert.equal(list.items.length, 1);
    await any.delete(spec);
    await fails(404, 'NotFound', any.read(spec));
});

test('a watch tells what happens, in order', async () => {
    const { metadata } = await core.listNamespacedConfigMap({ namespace });
    await create('watched', { n: '1' }, { app: 'watched' });
    await core.deleteNamespacedConfigMap({ name: 'watched', namespace });
    const events = [];
    await new Promise((resolve, reject) => {
        new k8s.Watch(loadConfig())
            .watch(
                `/api/v1/namespaces/${namespace}/configmaps`,
                { resourceVersion: metadata.resourceVersion, labelSelector: 'app=watched', timeoutSeconds: 30 },
                (type, object) => {
                    events.push([type, object.metadata.name]);
                    if (events.length === 2) resolve();
                },
                (error) => (error && error.name !== 'AbortError' ? reject(error) : resolve()),
            )
            .then((controller) => test.after(() => controller.abort()), reject);
    });
    assert.deepEqual(events, [['ADDED', 'watched'], ['DELETED', 'watched']]);
});
