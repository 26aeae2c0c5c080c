import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { shellScene } from './shell-scene.ts';

const MINUTE_MS = 60_000;
const NODES = Array.from({ length: 20 }, (_, index) => `f${index}`);

test('startIpamd: many nodes try a subnet that is full although it is described with room one at a time', async (t) => {
  const scene = await shellScene();
  const ipamd = await scene.start();
  await scene.until(() => ipamd.isLeading);
  const mend = scene.host.faults.add({
    fault: { kind: 'error', code: 'ResourceInsufficient.Subnet' },
    actions: ['CreateNetworkInterface'],
  });
  for (const name of NODES) await scene.join(name);
  await scene.clock.advance(10 * MINUTE_MS);
  const statusOf = (name: string) => (scene.nec(name)?.['status'] ?? {}) as NodeEniConfigStatus;
  const readyOf = (name: string) => statusOf(name).conditions?.find(({ type }) => type === 'Ready');
  for (const name of NODES) t.is(readyOf(name)?.reason, 'SubnetExhausted');
  // In the words of the product too: these nodes have no address at all.
  const words =
    /DashboardError,Code : -1100000 , Msg : Network scale error\[IP for pods in Zone ap-guangzhou-3 is not enough to scale out 1 nodes\.\]$/;
  for (const name of NODES) t.regex(readyOf(name)?.message ?? '', words);
  const versions = new Set<string>();
  const note = (): void => {
    for (const name of NODES) versions.add(`${name}/${scene.nec(name)?.metadata.resourceVersion}`);
  };
  note();
  const before = scene.host.counts()['CreateNetworkInterface'] ?? 0;
  for (let second = 0; second < 1_800; second++) {
    await scene.clock.advance(1_000);
    note();
  }
  const creations = (scene.host.counts()['CreateNetworkInterface'] ?? 0) - before;
  const writes = versions.size - NODES.length;
  // One attempt each time that the subnets are described, twice a minute; two writes for each.
  t.true(creations <= 70, `${creations} creations in half an hour`);
  t.true(writes <= 250, `${writes} writes in half an hour`);
  mend();
  await scene.clock.advance(2 * MINUTE_MS);
  t.deepEqual(
    NODES.filter((name) => readyOf(name)?.status !== 'True'),
    [],
  );
  await scene.clock.run(ipamd.close());
});
