import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { run } from '../../cni-plugins/run.ts';
import { SUPPORTED_VERSIONS } from '../../cni-plugins/skel/version.ts';
import { createFakeAgent, makeFolder, serve } from './support/test-agent.ts';

const MAPPING = { hostPort: 8080, containerPort: 80, protocol: 'tcp', hostIP: '' };
const WITH_PORT = { runtimeConfig: { portMappings: [MAPPING] } };

/** An agent, and a folder of CNI_PATH with a script in the place of portmap, which records its calls and answers by a file. */
async function openScene(t: ExecutionContext, { hasPortmap = true }: { readonly hasPortmap?: boolean } = {}) {
  const folder = makeFolder();
  const fake = createFakeAgent((n) => ({ address: `10.0.0.${n + 5}/32`, gateway: '169.254.1.1' }));
  const agent = await serve(`unix:${folder.socket}`, fake.answers);
  t.teardown(() => {
    agent.close();
    folder.remove();
  });
  const bin = join(folder.path, 'bin');
  const [calls, refusal] = ['calls', 'refusal'].map((name) => join(folder.path, name)) as [string, string];
  mkdirSync(bin);
  if (hasPortmap) {
    // One line a call; with a refusal its text, and exit code 1.
    const script = `#!/bin/sh\nread -r conf\necho "$CNI_COMMAND $CNI_CONTAINERID $conf" >> ${calls}\nif [ -e ${refusal} ]; then cat ${refusal}; exit 1; fi\n`;
    writeFileSync(join(bin, 'portmap'), script);
    chmodSync(join(bin, 'portmap'), 0o755);
  }
  const invoke = async (command: string, conf: object = {}, name = 'tke-route-eni') => {
    const network = { cniVersion: '1.1.0', name: 'net', type: name, ...conf };
    const ours = { backend: `unix:${folder.socket}` };
    const { code, stdout } = await run({
      name,
      args: [],
      env: {
        ...{ CNI_COMMAND: command, CNI_CONTAINERID: 'c1', CNI_NETNS: '/run/netns/x', CNI_IFNAME: 'eth0' },
        ...{ CNI_PATH: `/nowhere:${bin}`, PATH: process.env['PATH'] },
      },
      readStdin: () =>
        JSON.stringify(
          name === 'tke-eni-ipamc' ? { ...network, ipam: { type: name, ...ours } } : { ...network, ...ours },
        ),
      nowMs: () => 1_700_000_000_000,
      bootMs: () => 42_000,
    });
    return { code, json: stdout === '' ? undefined : (JSON.parse(stdout) as Record<string, unknown>) };
  };
  const recorded = (): readonly string[] =>
    existsSync(calls)
      ? readFileSync(calls, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
      : [];
  const refuse = (text: string): void => writeFileSync(refusal, text);
  return { invoke, recorded, refuse, leases: fake.leases };
}

/** What a recorded call was told. */
function confOf(call: string | undefined): Record<string, unknown> {
  return JSON.parse((call ?? '').split(' ').slice(2).join(' ')) as Record<string, unknown>;
}

/** Of the configuration, and those by which a Pod may have been mapped before: with and without cilium-cni, and the product's. */
const NAMES = ['net', 'tke-route-eni', 'generic-veth', 'tke-bridge'];

for (const [title, conf] of [
  ['no ports', {}],
  ['ports of containers alone', { runtimeConfig: { portMappings: [{ ...MAPPING, hostPort: 0 }] } }],
  ['no list of ports', { runtimeConfig: { portMappings: 'none' } }],
] as const) {
  test(`portmap: is not called for a Pod with ${title}`, async (t) => {
    const { invoke, recorded } = await openScene(t);
    t.is((await invoke('ADD', conf)).code, 0);
    t.is((await invoke('DEL', conf)).code, 0);
    t.deepEqual(recorded(), []);
  });
}

for (const cniVersion of SUPPORTED_VERSIONS) {
  test(`portmap: maps a hostPort after the ADD and before the DEL, CNI ${cniVersion}`, async (t) => {
    const { invoke, recorded, leases } = await openScene(t);
    const conf = { ...WITH_PORT, cniVersion };
    const added = await invoke('ADD', conf);
    t.is(added.code, 0);
    const found = cniVersion === '0.2.0' ? { ip4: { ip: '10.0.0.5/32' } } : { ips: [{ address: '10.0.0.5/32' }] };
    t.like(added.json, { cniVersion, ...found });
    t.is(leases.size, 1);
    t.is((await invoke('DEL', conf)).code, 0);
    t.is(leases.size, 0);

    t.deepEqual(
      recorded().map((call) => call.split(' ').slice(0, 2)),
      [['ADD', 'c1'], ...NAMES.map(() => ['DEL', 'c1'])],
    );
    // Releases of portmap in use do not support 1.1.0, and 0.2.0 has no chains.
    const told = cniVersion === '1.1.0' ? '1.0.0' : cniVersion === '0.2.0' ? '0.3.0' : cniVersion;
    const [add, ...dels] = recorded().map(confOf);
    t.like(add, {
      ...{ cniVersion: told, name: 'net', type: 'portmap', runtimeConfig: { portMappings: [MAPPING] } },
      prevResult: { cniVersion: told, ips: [{ address: '10.0.0.5/32', interface: 1 }] },
    });
    const del = { cniVersion: told, type: 'portmap', runtimeConfig: { portMappings: [MAPPING] } };
    t.deepEqual(
      dels,
      NAMES.map((name) => ({ ...del, name })),
    );
  });
}

test('portmap: is called for ports in the spelling of containerd, and gets them as they came', async (t) => {
  const { invoke, recorded } = await openScene(t);
  const portMappings = [{ HostPort: 8080, ContainerPort: 80, Protocol: 'tcp', HostIP: '' }];
  t.is((await invoke('ADD', { runtimeConfig: { portMappings } })).code, 0);
  t.is((await invoke('DEL', { runtimeConfig: { portMappings } })).code, 0);
  t.deepEqual(
    recorded().map((call) => confOf(call)['runtimeConfig']),
    Array.from({ length: 1 + NAMES.length }, () => ({ portMappings })),
  );
});

test('portmap: where it is missing a Pod with a hostPort takes no address, and can be deleted', async (t) => {
  const { invoke, leases } = await openScene(t, { hasPortmap: false });
  const { code, json } = await invoke('ADD', WITH_PORT);
  t.is(code, 1);
  t.is(json?.['code'], 5);
  t.regex(String(json?.['msg']), /^hostPort 8080: the CNI plugin portmap is in no folder of CNI_PATH, \/nowhere:/);
  t.regex(String(json?.['details']), /--port-mapping=false/);
  t.is(leases.size, 0);
  t.is((await invoke('DEL', WITH_PORT)).code, 0);
});

test('portmap: its failure is the failure of the ADD, in its words; the DEL after it undoes both', async (t) => {
  const { invoke, recorded, refuse, leases } = await openScene(t);
  refuse('{"code": 999, "msg": "iptables: no chain", "details": "by hand"}');
  t.like(await invoke('ADD', WITH_PORT), {
    code: 1,
    json: { code: 999, msg: 'portmap (CNI 1.0.0) failed: iptables: no chain', details: 'by hand' },
  });
  t.like(await invoke('DEL', WITH_PORT), { code: 1 });
  t.is(leases.size, 1, 'the address stays while the mapping may be there');
  refuse('{"code": 999, "msg": "neither iptables nor ip6tables usable"}');
  t.is((await invoke('DEL', WITH_PORT)).code, 0, 'without iptables nothing was mapped');
  t.is(leases.size, 0);
  t.is(recorded().length, 3);
});

test('portmap: one that prints no error, or is killed, is named all the same', async (t) => {
  const { invoke, refuse } = await openScene(t);
  refuse('usage: portmap');
  t.like(await invoke('ADD', WITH_PORT), { json: { code: 999, msg: 'portmap (CNI 1.0.0) failed: usage: portmap' } });
});

test('tke-eni-ipamc: maps no ports, which are the main plugin’s', async (t) => {
  const { invoke, recorded } = await openScene(t);
  t.is((await invoke('ADD', WITH_PORT, 'tke-eni-ipamc')).code, 0);
  t.is((await invoke('DEL', WITH_PORT, 'tke-eni-ipamc')).code, 0);
  t.deepEqual(recorded(), []);
});
