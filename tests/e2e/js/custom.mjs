// Custom resources.
import assert from 'node:assert/strict';
import test from 'node:test';
import * as k8s from '@kubernetes/client-node';
import { eventually, fails, loadConfig, namespace } from './support.mjs';

const group = `${namespace}.example.com`;
const where = { group, version: 'v1', namespace, plural: 'gears' };
const definitions = loadConfig().makeApiClient(k8s.ApiextensionsV1Api);
const custom = loadConfig().makeApiClient(k8s.CustomObjectsApi);
const gear = (name, spec) => ({ apiVersion: `${group}/v1`, kind: 'Gear', metadata: { name }, spec });
const teeth = { type: 'integer', minimum: 1 };
const merge = k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch);

test.before(async () => {
    await definitions.createCustomResourceDefinition({
        body: {
            metadata: { name: `gears.${group}` },
            spec: {
                group,
                scope: 'Namespaced',
                names: { plural: 'gears', singular: 'gear', kind: 'Gear' },
                versions: [
                    {
                        name: 'v1',
                        served: true,
                        storage: true,
                        subresources: { status: {} },
                        schema: {
                            openAPIV3Schema: {
                                type: 'object',
                                properties: {
                                    spec: { type: 'object', required: ['teeth'], properties: { teeth } },
                                    status: { type: 'object', x_kubernetes_preserve_unknown_fields: true },
                                },
                            },
                        },
                    },
                ],
            },
        },
    });
    await eventually(
        () => custom.listNamespacedCustomObject(where).catch((error) => assert.equal(error.code, 404)),
        'the resource to be served',
    );
});

test('custom objects live like others', async () => {
    const made = await custom.createNamespacedCustomObject({ ...where, body: gear('life', { teeth: 8 }) });
    assert.equal(made.metadata.generation, 1);
    const patched = await custom.patchNamespacedCustomObject({ ...where, name: 'life', body: { spec: { teeth: 9 } } }, merge);
    assert.deepEqual([patched.spec.teeth, patched.metadata.generation], [9, 2]);
    await fails(409, 'Conflict', custom.replaceNamespacedCustomObject({ ...where, name: 'life', body: made }));
    patched.spec.teeth = 10;
    await custom.replaceNamespacedCustomObject({ ...where, name: 'life', body: patched });
    const list = await custom.listNamespacedCustomObject(where);
    assert.deepEqual([list.kind, list.items.map((item) => item.spec.teeth)], ['GearList', [10]]);
    await custom.deleteNamespacedCustomObject({ ...where, name: 'life' });
    await fails(404, 'NotFound', custom.getNamespacedCustomObject({ ...where, name: 'life' }));
});

test('custom objects are validated and pruned', async () => {
    const status = await fails(422, 'Invalid', custom.createNamespacedCustomObject({ ...where, body: gear('bad', { teeth: 0 }) }));
    assert.deepEqual(status.details.causes.map((cause) => cause.field), ['spec.teeth']);
    const made = await custom.createNamespacedCustomObject({ ...where, body: gear('pruned', { teeth: 1, color: 'red' }) });
    assert.deepEqual(made.spec, { teeth: 1 });
});

test('status is written apart from the rest', async () => {
    await custom.createNamespacedCustomObject({ ...where, body: gear('apart', { teeth: 8 }) });
    const body = { spec: { teeth: 1 }, status: { worn: true, deep: { list: [1, 'two', null] } } };
    const written = await custom.patchNamespacedCustomObjectStatus({ ...where, name: 'apart', body }, merge);
    assert.deepEqual([written.spec, written.status], [{ teeth: 8 }, body.status]);
    assert.equal(written.metadata.generation, 1);
});
