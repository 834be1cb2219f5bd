// An informer that runs until its standard input ends. Tells each event as a line of JSON, and at the end what it holds.
import * as k8s from '@kubernetes/client-node';
import { core, loadConfig, namespace } from './support.mjs';

const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const list = () => core.listNamespacedConfigMap({ namespace });
const informer = k8s.makeInformer(loadConfig(), `/api/v1/namespaces/${namespace}/configmaps`, list);
const shown = (object) => ({ name: object.metadata.name, version: object.metadata.resourceVersion, data: object.data ?? {} });

for (const event of ['add', 'update', 'delete']) informer.on(event, (object) => tell({ event, ...shown(object) }));
informer.on('connect', () => tell({ event: 'connect' }));
informer.on('error', (error) => {
    tell({ event: 'error', message: String(error) });
    setTimeout(() => informer.start(), 50);
});
await informer.start();

process.stdin.resume();
process.stdin.on('end', () => {
    tell({ event: 'held', objects: informer.list().map(shown) });
    process.exit(0);
});
