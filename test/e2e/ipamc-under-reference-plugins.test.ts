import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { buildExecutable } from '../cni-plugins/support/built.ts';
import { callExecutable } from '../cni-plugins/support/call-executable.ts';
import { createFakeAgent, makeFolder, serve } from '../cni-plugins/support/test-agent.ts';

const REFERENCE_DIR = '/usr/lib/cni';
const binDir = await buildExecutable('tke-route-eni');

/** Makes two network namespaces, one that plays the host and one for the Pod, removed when the test ends. */
function makeNamespaces(t: ExecutionContext) {
  const suffix = randomBytes(4).toString('hex');
  const [host, pod] = [`tke-test-h-${suffix}`, `tke-test-p-${suffix}`];
  for (const name of [host, pod]) {
    execFileSync('ip', ['netns', 'add', name]);
    t.teardown(() => execFileSync('ip', ['netns', 'delete', name]));
  }
  execFileSync('ip', ['-n', host, 'link', 'set', 'lo', 'up']);
  return { host, pod };
}

function ip(namespace: string, ...args: readonly string[]): Record<string, unknown>[] {
  const out = execFileSync('ip', ['-n', namespace, '-j', ...args]).toString();
  return out.trim() === '' ? [] : (JSON.parse(out) as Record<string, unknown>[]);
}

function addressesOf(namespace: string, ifname: string): unknown[] {
  const [link] = ip(namespace, 'address', 'show', 'dev', ifname);
  const list = (link?.['addr_info'] ?? []) as Record<string, unknown>[];
  return list.filter(({ scope }) => scope === 'global').map(({ local, prefixlen }) => `${local}/${prefixlen}`);
}

/** Calls a reference plugin in the host namespace; it finds tke-eni-ipamc by CNI_PATH and calls it itself. */
function call(plugin: string, command: string, { host, pod }: ReturnType<typeof makeNamespaces>, conf: object) {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: `c-${pod}`,
    CNI_NETNS: `/run/netns/${pod}`,
    CNI_IFNAME: 'eth0',
    CNI_PATH: `${binDir}:${REFERENCE_DIR}`,
    PATH: process.env['PATH'] ?? '',
  };
  const command_ = ['ip', 'netns', 'exec', host, `${REFERENCE_DIR}/${plugin}`] as const;
  return callExecutable([...command_], env, JSON.stringify(conf));
}

// Both reference plugins add the routes before they make the gateway reachable, so the gateway must lie in the
// address's own prefix: a /32 behind a link-local gateway, as tke-route-eni wires it, is of no use to them.
for (const [what, cniVersion, plugin, options, address, gateway, route] of [
  ['ptp', '1.0.0', 'ptp', {}, '10.99.0.5/24', '10.99.0.1', '0.0.0.0/0'],
  ['ptp in CNI 0.3.1', '0.3.1', 'ptp', {}, '10.99.0.5/24', '10.99.0.1', '0.0.0.0/0'],
  ['ptp with IPv6', '1.0.0', 'ptp', {}, 'fd00:99::5/64', 'fd00:99::1', '::/0'],
  [
    'bridge as gateway',
    '0.4.0',
    'bridge',
    { bridge: 'br0', isGateway: true },
    '10.99.0.5/24',
    '10.99.0.1',
    '0.0.0.0/0',
  ],
] as const) {
  test(`tke-eni-ipamc: gives addresses to ${what}`, async (t) => {
    const namespaces = makeNamespaces(t);
    const folder = makeFolder();
    t.teardown(folder.remove);
    const fake = createFakeAgent(() => ({ address, gateway }), [{ dst: route }]);
    const agent = await serve(`unix:${folder.socket}`, fake.answers);
    t.teardown(agent.close);
    const conf = {
      cniVersion,
      name: 'net',
      type: plugin,
      ...options,
      ipam: { type: 'tke-eni-ipamc', backend: `unix:${folder.socket}` },
    };
    const add = await call(plugin, 'ADD', namespaces, conf);
    t.is(add.code, 0, add.stdout + add.stderr);
    t.like(add.json, { cniVersion, ips: [{ address, gateway }] });
    t.deepEqual(addressesOf(namespaces.pod, 'eth0'), [address]);
    const family = address.includes(':') ? '-6' : '-4';
    const routes = ip(namespaces.pod, family, 'route', 'show', 'default');
    t.is(routes[0]?.['gateway'], gateway);
    t.deepEqual(
      [...fake.leases.values()].map((lease) => lease.plugin),
      [2],
    );
    if (cniVersion !== '0.3.1') {
      const check = await call(plugin, 'CHECK', namespaces, { ...conf, prevResult: add.json });
      t.is(check.code, 0, check.stdout + check.stderr);
    }
    for (let round = 0; round < 2; round++) {
      const del = await call(plugin, 'DEL', namespaces, conf);
      t.is(del.code, 0, del.stdout + del.stderr);
    }
    t.is(fake.leases.size, 0);
    t.deepEqual(
      ip(namespaces.pod, 'link', 'show').map(({ ifname }) => ifname),
      ['lo'],
    );
  });
}

test('tke-eni-ipamc: fails the main plugin with code 11 when there is no agent, and leaves no link', async (t) => {
  const namespaces = makeNamespaces(t);
  const folder = makeFolder();
  t.teardown(folder.remove);
  const ipam = { type: 'tke-eni-ipamc', backend: `unix:${folder.socket}` };
  const { code, json } = await call('ptp', 'ADD', namespaces, { cniVersion: '1.0.0', name: 'net', type: 'ptp', ipam });
  t.is(code, 1);
  t.like(json, { code: 11, msg: `the agent on unix:${folder.socket} does not answer` });
  t.deepEqual(
    ip(namespaces.pod, 'link', 'show').map(({ ifname }) => ifname),
    ['lo'],
  );
});
