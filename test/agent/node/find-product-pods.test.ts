import { createServer } from 'node:net';
import test from 'ava';
import type { HostDump } from '../../../agent/node/read-evidence.ts';
import { findProductPods, refuseProduct } from '../../../agent/node/refuse-product.ts';
import { hostVethAlias, hostVethName } from '../../../dataplane/host-veth-name.ts';
import { RTPROT_TKE_ENI, TABLE_MAIN } from '../../../dataplane/numbers.ts';

const RTPROT_BOOT = 3;
const POD = { containerId: 'c1', ifName: 'eth0', podNamespace: 'shop', podName: 'web-0' };
const VETH = hostVethName(POD);

/** What an agent leaves for a Pod with the two rules: the product's, or one with differences. */
function wired(ip: string, parts: { protocol?: number; alias?: string; name?: string; from?: number } = {}): HostDump {
  const { protocol = RTPROT_BOOT, alias, name = VETH, from = 4_003 } = parts;
  return {
    links: [{ ifindex: 7, ifname: name, ...(alias === undefined ? {} : { ifalias: alias }) }],
    routes: [{ dst: `${ip}/32`, oif: 7, table: TABLE_MAIN, protocol }],
    rules: [
      { priority: 512, dst: `${ip}/32`, table: TABLE_MAIN, protocol },
      { priority: 1536, src: `${ip}/32`, table: from, protocol },
    ],
  } as unknown as HostDump;
}

const found = test.macro((t, dump: HostDump, want: readonly string[]) => t.deepEqual(findProductPods(dump), want));
const OF_PRODUCT = wired('10.1.0.9');
test('findProductPods: a Pod of the product', found, OF_PRODUCT, ['10.1.0.9']);
test('findProductPods: one with tables in its old numbers', found, wired('10.1.0.9', { from: 2_003 }), ['10.1.0.9']);
test('findProductPods: not ours in per-pod mode', found, wired('10.1.0.9', { protocol: RTPROT_TKE_ENI }), []);
test('findProductPods: not the link of a Pod of ours', found, wired('10.1.0.9', { alias: hostVethAlias(POD) }), []);
test(
  'findProductPods: not a Pod of a main plugin with rules of its own',
  found,
  wired('10.1.0.9', { name: 'veth12345678' }),
  [],
);
test('findProductPods: not what an ended Pod left', found, { ...OF_PRODUCT, links: [] }, []);
test('findProductPods: not one rule alone', found, { ...OF_PRODUCT, rules: OF_PRODUCT.rules.slice(0, 1) }, []);

test('refuseProduct: names who answers, and Pods that live; passes on a node of its own', async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') return t.fail('no address');
  const at = { host: '127.0.0.1', port: address.port };
  const none: HostDump = { links: [], routes: [], rules: [] };
  const answered = { code: 'ANOTHER_AGENT', message: /answers on 127\.0\.0\.1:\d+.*DaemonSet off this node/ };
  await t.throwsAsync(
    refuseProduct(() => none, at),
    answered,
  );
  await new Promise((resolve) => server.close(resolve));
  await refuseProduct(() => none, at);
  const living = { code: 'ANOTHER_AGENT', message: /\(10\.1\.0\.9\).*Drain the node first/ };
  await t.throwsAsync(
    refuseProduct(() => OF_PRODUCT, at),
    living,
  );
});
