import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import type { RequestOf } from '../../agent/api/service.ts';
import { run } from '../../cni-plugins/run.ts';
import { SUPPORTED_VERSIONS } from '../../cni-plugins/skel/version.ts';
import { type Answers, createFakeAgent, makeFolder, serve } from './support/test-agent.ts';

type Overrides = {
  readonly name?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly conf?: Readonly<Record<string, unknown>>;
};

/** Calls the executable's code in this process, as a runtime would call the file. */
async function invoke(
  command: string,
  backend: string,
  { name = 'tke-route-eni', env = {}, conf = {} }: Overrides = {},
) {
  const full = { cniVersion: '1.1.0', name: 'net', type: name, backend, ...conf };
  const { code, stdout } = await run({
    name,
    args: [],
    env: { CNI_COMMAND: command, CNI_CONTAINERID: 'c1', CNI_NETNS: '/run/netns/x', CNI_IFNAME: 'eth0', ...env },
    readStdin: () => JSON.stringify(full),
    nowMs: () => 1_700_000_000_000,
    bootMs: () => 42_000,
  });
  return { code, stdout, json: stdout === '' ? undefined : (JSON.parse(stdout) as Record<string, unknown>) };
}

async function withAgent(answers: Answers) {
  const folder = makeFolder();
  const agent = await serve(`unix:${folder.socket}`, answers);
  return {
    backend: `unix:${folder.socket}`,
    spool: join(folder.path, 'deletions'),
    end: () => {
      agent.close();
      folder.remove();
    },
  };
}

const v4 = (n: number) => ({ address: `10.0.0.${n + 5}/32`, gateway: '169.254.1.1' });

for (const cniVersion of SUPPORTED_VERSIONS) {
  test(`run: ADD, ADD, CHECK, DEL, DEL in version ${cniVersion}`, async (t) => {
    const fake = createFakeAgent(v4);
    const agent = await withAgent(fake.answers);
    t.teardown(agent.end);
    const conf = { cniVersion };
    const first = await invoke('ADD', agent.backend, { conf });
    t.is(first.code, 0);
    const found = cniVersion === '0.2.0' ? { ip4: { ip: '10.0.0.5/32' } } : { ips: [{ address: '10.0.0.5/32' }] };
    t.like(first.json, { cniVersion, ...found });
    t.deepEqual(await invoke('ADD', agent.backend, { conf }), first, 'ADD is idempotent');
    const check = await invoke('CHECK', agent.backend, { conf: { ...conf, prevResult: first.json } });
    if (cniVersion < '0.4.0') t.like(check, { code: 1, json: { code: 1 } });
    else t.deepEqual(check, { code: 0, stdout: '', json: undefined });
    for (let round = 0; round < 2; round++) {
      t.deepEqual(await invoke('DEL', agent.backend, { conf }), { code: 0, stdout: '', json: undefined });
      t.is(fake.leases.size, 0);
    }
    t.false(existsSync(agent.spool), 'nothing is spooled while the agent answers');
  });
}

test('run: tells the agent all that the runtime said', async (t) => {
  const seen: RequestOf<'add'>[] = [];
  const agent = await withAgent({
    add: (request) => {
      seen.push(request);
      return { attachment: {} };
    },
  });
  t.teardown(agent.end);
  const env = { CNI_ARGS: 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web-0;K8S_POD_UID=u1' };
  const conf = { mtu: 1400, disableIPv6: true, timeoutMs: 5000, colour: 'red' };
  await invoke('ADD', agent.backend, { name: 'tke-direct-eni', env, conf });
  t.deepEqual(seen, [
    {
      plugin: 3,
      sandbox: {
        containerId: 'c1',
        ifName: 'eth0',
        netns: '/run/netns/x',
        podNamespace: 'ns',
        podName: 'web-0',
        podUid: 'u1',
      },
      network: 'net',
      mtu: 1400,
      deadlineUnixMs: 1_700_000_005_000,
      disableIpv6: true,
      clientVersion: '0.0.0-dev',
      uplink: false,
      ignoredKeys: ['colour'],
      filterPlace: false,
    },
  ]);
});

test("run: passes the agent's error on", async (t) => {
  const error = { code: 101, msg: 'no address free: want 1, free 0, cooling 3', details: 'wait' };
  const agent = await withAgent({
    add: () => ({ error }),
    del: () => ({ error }),
    status: () => ({ error }),
    gc: () => ({ error }),
  });
  t.teardown(agent.end);
  for (const command of ['ADD', 'DEL', 'STATUS', 'GC']) {
    const conf = { 'cni.dev/valid-attachments': [] };
    const { code, json } = await invoke(command, agent.backend, { conf });
    t.deepEqual({ code, json }, { code: 1, json: { cniVersion: '1.1.0', ...error } }, command);
  }
  t.false(existsSync(agent.spool), 'an answered DEL is not spooled');
});

test('run: never prints error code 0', async (t) => {
  const agent = await withAgent({ add: () => ({ error: { msg: 'odd' } }) });
  t.teardown(agent.end);
  t.like(await invoke('ADD', agent.backend), { code: 1, json: { code: 999, msg: 'odd' } });
});

test('run: CHECK reports what agent and prevResult say, in one error', async (t) => {
  const fake = createFakeAgent(v4);
  const agent = await withAgent({
    ...fake.answers,
    check: (request) => ({
      ...fake.answers.check(request),
      differences: ['route 10.0.0.5/32: gone', 'mtu: 1500, want 1400'],
    }),
  });
  t.teardown(agent.end);
  const { json: result } = await invoke('ADD', agent.backend);
  const prevResult = { ...result, ips: [{ address: '10.0.0.77/32', interface: 1 }] };
  const { code, json } = await invoke('CHECK', agent.backend, { conf: { prevResult } });
  t.is(code, 1);
  t.like(json, { code: 104, msg: 'c1 eth0: 3 difference(s) from what ADD made' });
  t.deepEqual(String(json?.['details']).split('\n'), [
    'route 10.0.0.5/32: gone',
    'mtu: 1500, want 1400',
    'prevResult: the agent holds 10.0.0.5/32, prevResult has 10.0.0.77/32',
  ]);
});

test('run: GC releases what is not listed', async (t) => {
  const fake = createFakeAgent(v4);
  const agent = await withAgent(fake.answers);
  t.teardown(agent.end);
  for (const CNI_CONTAINERID of ['keep', 'gone']) await invoke('ADD', agent.backend, { env: { CNI_CONTAINERID } });
  const conf = { 'cni.dev/valid-attachments': [{ containerID: 'keep', ifname: 'eth0' }] };
  t.deepEqual(await invoke('GC', agent.backend, { conf }), { code: 0, stdout: '', json: undefined });
  t.deepEqual([...fake.leases.keys()], ['keep eth0']);
});

test('run: STATUS says nothing when the agent is well', async (t) => {
  const agent = await withAgent(createFakeAgent(v4).answers);
  t.teardown(agent.end);
  t.deepEqual(await invoke('STATUS', agent.backend), { code: 0, stdout: '', json: undefined });
});

for (const [command, code] of [
  ['ADD', 11],
  ['CHECK', 11],
  ['GC', 11],
  ['STATUS', 50],
] as const) {
  test(`run: ${command} answers code ${code} when there is no agent, and says what to look at`, async (t) => {
    const folder = makeFolder();
    t.teardown(folder.remove);
    const conf = { prevResult: { ips: [] }, 'cni.dev/valid-attachments': [] };
    const { json, ...rest } = await invoke(command, `unix:${folder.socket}`, { conf });
    t.is(rest.code, 1);
    t.like(json, { code, msg: `the agent on unix:${folder.socket} does not answer` });
    t.regex(String(json?.['details']), new RegExp(`^${command}: UNREACHABLE: connect ENOENT .*kubectl`));
  });
}

test('run: DEL is left on disk when there is no agent', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const env = { CNI_NETNS: '', CNI_ARGS: 'K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web-0;K8S_POD_UID=u1' };
  for (let round = 0; round < 2; round++) {
    t.deepEqual(await invoke('DEL', `unix:${folder.socket}`, { env }), { code: 0, stdout: '', json: undefined });
  }
  const spool = join(folder.path, 'deletions');
  const [file = '', ...others] = readdirSync(spool);
  t.deepEqual(others, [], 'one attachment has one file, and no temporary one is left');
  t.regex(file, /^[0-9a-f]{32}\.json$/);
  t.is(statSync(join(spool, file)).mode & 0o777, 0o600);
  t.deepEqual(JSON.parse(readFileSync(join(spool, file), 'utf8')), {
    containerId: 'c1',
    ifName: 'eth0',
    netns: '',
    network: 'net',
    plugin: 1,
    podNamespace: 'ns',
    podName: 'web-0',
    podUid: 'u1',
    writtenAtMs: 1_700_000_000_000,
    writtenAtBootMs: 42_000,
  });
});

test('run: DEL of another interface of the same container has a file of its own', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  for (const CNI_IFNAME of ['eth0', 'eth1']) await invoke('DEL', `unix:${folder.socket}`, { env: { CNI_IFNAME } });
  t.is(readdirSync(join(folder.path, 'deletions')).length, 2);
});

test('run: DEL answers code 5 when it can neither be delivered nor left on disk', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  // What stands in the place of `deletions` itself is moved aside; below a file even root can make nothing.
  writeFileSync(join(folder.path, 'run'), 'a file where the folder of the socket should be');
  const { code, json } = await invoke('DEL', `unix:${join(folder.path, 'run', 'agent.sock')}`);
  t.is(code, 1);
  t.is(json?.['code'], 5);
  t.regex(String(json?.['msg']), /does not answer and the DEL cannot be left for it: ENOTDIR/);
});

test('run: DEL answers code 5 when the spool folder cannot be made', async (t) => {
  const { code, json } = await invoke('DEL', 'unix:/proc/tke-test/agent.sock');
  t.is(code, 1);
  t.is(json?.['code'], 5);
  t.regex(String(json?.['msg']), /cannot be left for it: ENOENT/);
});

for (const [what, onData] of [
  ['takes the call and is silent', () => {}],
  ['hangs up', (socket: { destroy(): void }) => socket.destroy()],
  ['is no agent', (socket: { write(text: string): void }) => socket.write('220 smtp.example.com ready\r\n')],
] as const) {
  test(`run: DEL is left on disk when what listens ${what}`, async (t) => {
    const folder = makeFolder();
    t.teardown(folder.remove);
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => onData(socket));
    });
    await new Promise<void>((resolve) => server.listen(folder.socket, resolve));
    t.teardown(() => server.close());
    t.is((await invoke('DEL', `unix:${folder.socket}`, { conf: { timeoutMs: 200 } })).code, 0);
    t.is(readdirSync(join(folder.path, 'deletions')).length, 1);
    const { json } = await invoke('ADD', `unix:${folder.socket}`, { conf: { timeoutMs: 200 } });
    t.like(json, { code: 11 });
  });
}

test('run: tke-eni-ipamc answers addresses alone', async (t) => {
  const fake = createFakeAgent(v4);
  const agent = await withAgent(fake.answers);
  t.teardown(agent.end);
  const conf = { type: 'ptp', backend: undefined, ipam: { type: 'tke-eni-ipamc', backend: agent.backend } };
  const { code, json } = await invoke('ADD', '', { name: 'tke-eni-ipamc', conf });
  t.is(code, 0);
  t.deepEqual(json, {
    cniVersion: '1.1.0',
    ips: [{ address: '10.0.0.5/32', gateway: '169.254.1.1' }],
    routes: [{ dst: '0.0.0.0/0' }],
  });
  t.is(fake.leases.get('c1 eth0')?.plugin, 2);
});

test('run: VERSION answers whatever stands on stdin', async (t) => {
  for (const [stdin, cniVersion] of [
    ['', '1.1.0'],
    ['{', '1.1.0'],
    ['{"cniVersion":"0.4.0"}', '0.4.0'],
    ['{"cniVersion":"0.1.0"}', '1.1.0'],
  ] as const) {
    const { code, stdout } = await run({
      name: 'tke-eni-ipamc',
      args: [],
      env: { CNI_COMMAND: 'VERSION' },
      readStdin: () => stdin,
      nowMs: () => 0,
      bootMs: () => 0,
    });
    t.is(code, 0);
    t.deepEqual(JSON.parse(stdout), {
      cniVersion,
      supportedVersions: ['0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'],
    });
  }
});

test('run: prints an error in the version of the conf', async (t) => {
  t.like(await invoke('ADD', 'nowhere', { conf: { cniVersion: '0.4.0' } }), { json: { cniVersion: '0.4.0', code: 7 } });
  t.like(await invoke('ADD', 'nowhere', { conf: { cniVersion: '0.1.0' } }), { json: { cniVersion: '1.1.0', code: 1 } });
  t.like(await invoke('ADD', 'nowhere', { conf: { cniVersion: '0.2.0' } }), { json: { cniVersion: '0.2.0', code: 7 } });
});

for (const ifName of ['all', 'default', '.', '..']) {
  test(`run: an ADD with CNI_IFNAME ${ifName}, which no interface may have, answers code 4`, async (t) => {
    const { code, json } = await invoke('ADD', 'unix:/nowhere', { env: { CNI_IFNAME: ifName } });
    t.is(code, 1);
    t.like(json, { code: 4 });
    t.true(JSON.stringify(json).includes('CNI_IFNAME'), JSON.stringify(json));
  });
}

test('run: names the names when it is called by another', async (t) => {
  const { code, json } = await invoke('ADD', 'unix:/x', { name: 'node' });
  t.is(code, 1);
  t.is(json?.['msg'], 'called as node, which is none of tke-route-eni, tke-eni-ipamc, tke-direct-eni');
});

test('run: makes code 999 of what nobody foresaw', async (t) => {
  const { code, stdout } = await run({
    name: 'tke-route-eni',
    args: [],
    env: { CNI_COMMAND: 'ADD', CNI_CONTAINERID: 'c1', CNI_NETNS: '/x', CNI_IFNAME: 'eth0' },
    readStdin: () => {
      throw new TypeError('out of the blue');
    },
    nowMs: () => 0,
    bootMs: () => 0,
  });
  t.is(code, 1);
  t.like(JSON.parse(stdout), { cniVersion: '1.1.0', code: 999, msg: 'internal error: out of the blue' });
});

test('run: says its release when asked', async (t) => {
  const deps = { env: {}, readStdin: () => '', nowMs: () => 0, bootMs: () => 0 };
  const { code, stdout } = await run({ ...deps, name: 'tke-route-eni', args: ['--version'] });
  t.deepEqual({ code, stdout }, { code: 0, stdout: 'tke-route-eni 0.0.0-dev\n' });
});

test('run: DEL makes the spool folder for root alone', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  mkdirSync(join(folder.path, 'run'));
  await invoke('DEL', `unix:${folder.path}/run/agent.sock`);
  t.is(statSync(join(folder.path, 'run', 'deletions')).mode & 0o777, 0o700);
});
