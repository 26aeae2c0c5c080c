import test from 'ava';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { CILIUM_NODES } from '../../../../kube/resource-types.ts';
import { type AgentLife, endLease, leaseTo, startLife } from '../../../agent/cluster/cluster-scene.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { CiliumScene } from './cilium-scene.ts';

// Our agent serves the pool that our ipamd fills: no part of Cilium is there.

const NODE = 'n1';
const FLAGS = ['--supply-source=cilium-node', '--reserve-node-addresses=true', '--ip-cooldown=0s'];
const PODS = 12;

test('a pool of ipamd is served by our agent: it grows, gives back, and takes no address of a Pod', async (t) => {
  const folder = createTempDir('own-agent');
  t.teardown(() => folder.close());
  const scene = await CiliumScene.open();
  const { clock, server, kube } = scene.shell;
  const ipamd = await scene.shell.start({ flags: ['--leader-elect=false'] });
  await scene.join(NODE, { hasAgent: false });
  const object: KubeObject = { apiVersion: 'cilium.io/v2', kind: 'CiliumNode', metadata: { name: NODE }, spec: {} };
  await scene.run(kube.create(CILIUM_NODES, object));
  await scene.until(() => scene.poolIps(NODE).length >= 2, 'a pool');

  const begin = (): AgentLife => startLife(clock, server, folder.join('journal.db'), FLAGS);
  let life = begin();
  const owners = (): readonly string[] => [...scene.ipam(NODE).used.values()].map(({ owner = '' }) => owner).sort();
  await scene.until(() => owners().join() === 'health,router', 'the addresses of the node itself');

  const ips = new Map<string, string>();
  for (let number = 0; number < PODS; number++) {
    const name = `web-${number}`;
    await scene.createPod(name, NODE);
    await scene.until(() => {
      const ip = leaseTo(life, name, clock.monotonicMs());
      if (ip !== undefined) ips.set(name, ip);
      return ip !== undefined;
    }, `an address for ${name}`);
    await scene.showAddress(name, ips.get(name) ?? '');
  }
  t.is(new Set(ips.values()).size, PODS);
  await scene.until(() => owners().length === PODS + 2, 'all Pods in `used`');

  const full = scene.poolIps(NODE).length;
  const stays = (): boolean => [...ips.values()].every((ip) => scene.assigned(NODE).includes(ip));
  for (const name of [...ips.keys()].slice(0, PODS - 2)) {
    endLease(life, name, clock.monotonicMs());
    ips.delete(name);
    await scene.removePod(name);
  }
  let lives = 1;
  await scene.until(() => {
    t.true(stays(), 'an address of a Pod left its ENI');
    // Between the mark and the answer, and between the answer and the end.
    const isMarked = scene.ipam(NODE).releases.size > 0;
    if (isMarked && lives < 4 && clock.monotonicMs() % 3_000 < scene.stepMs) {
      life.kill();
      life = begin();
      lives++;
    }
    return scene.poolIps(NODE).length < full - 4 && scene.isSettled(NODE);
  }, 'the surplus is given back');
  t.true(lives > 1);
  t.deepEqual(owners().filter((owner) => owner.includes('/')).length, 2);
  t.deepEqual(scene.ipam(NODE).operatorError, '');
  life.kill();
  await scene.run(ipamd.close());
});
