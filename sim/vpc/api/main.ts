/**
 * Runs the simulated cloud as a program until it is told to stop, so that its clients can be measured apart from it.
 *
 *   node sim/vpc/api/main.ts --listen 127.0.0.1:0 --spec cloud.json [--seed 1] [--task-ms 500,2000] [--latency-ms 0,0] [--per-second 100]
 *
 * The spec is a CloudSpec with `instances` beside it. Prints one line of JSON once it serves: {"endpoint","control","pid",
 * "secretId","secretKey"}. The control address takes POSTs: see control.ts. There are no packets here.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { systemClock } from '../../../runtime/clock.ts';
import { startCloudControl } from './control.ts';
import { CloudHost } from './host.ts';
import { CloudServer } from './http-server.ts';
import type { CloudSpec, InstanceSpec } from './model/state.ts';

const { values } = parseArgs({
  options: {
    listen: { type: 'string', default: '127.0.0.1:0' },
    spec: { type: 'string' },
    seed: { type: 'string', default: '1' },
    'task-ms': { type: 'string', default: '500,2000' },
    'latency-ms': { type: 'string', default: '0,0' },
    'per-second': { type: 'string' },
    'secret-id': { type: 'string', default: 'AKIDtest' },
    'secret-key': { type: 'string', default: 'secret' },
  },
});
if (values.spec === undefined) throw new Error('--spec is missing: a JSON file with vpcId, subnets and instances');
// The program's own input, made by whoever starts it.
const spec = JSON.parse(readFileSync(values.spec, 'utf8')) as CloudSpec & { instances?: readonly InstanceSpec[] };
const perSecond = values['per-second'];
const host = new CloudHost(spec, systemClock, {
  seed: Number(values.seed),
  taskMs: range(values['task-ms']),
  latencyMs: range(values['latency-ms']),
  ...(perSecond === undefined ? {} : { perSecond: () => Number(perSecond) }),
});
for (const instance of spec.instances ?? []) host.model.state.addInstance(instance);
const [address = '127.0.0.1', port = '0'] = values.listen.split(/:(?=\d+$)/);
const server = new CloudServer(host, { host: address, port: Number(port) });
const { secretId, secretKey } = server.credentials.add(values['secret-id'], values['secret-key']);
await server.start();
const control = await startCloudControl(server, address);
const { endpoint } = server;
process.stdout.write(`${JSON.stringify({ endpoint, control: control.url, pid: process.pid, secretId, secretKey })}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void Promise.all([server.close(), control.close()]).then(() => process.exit(0)));

function range(text: string): readonly [number, number] {
  const [least = 0, most = least] = text.split(',').map(Number);
  return [least, most];
}
