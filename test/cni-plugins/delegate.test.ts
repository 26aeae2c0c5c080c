import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { ReplyInitOf } from '../../agent/api/service.ts';
import { run } from '../../cni-plugins/run.ts';
import { makeFolder, serve } from './support/test-agent.ts';

const REFUSAL = 'no network can be chosen for default/web: expected one of tke-bridge, tke-route-eni, tke-direct-eni';
const RESULT = '{"cniVersion":"0.4.0","interfaces":[{"name":"x0"}],"ips":[{"version":"4","address":"192.0.2.9/24"}]}';

/** What a plugin was called with. */
type Call = { readonly plugin: string; readonly command: string; readonly env: string; readonly conf: Conf };
type Conf = Readonly<Record<string, unknown>>;

/** An agent that leaves the Pod's network to others, a folder of configurations, and scripts as plugins that record their calls. */
async function openScene(t: ExecutionContext, reply: (confDir: string) => ReplyInitOf<'add'> = delegateTo('storage')) {
  const folder = makeFolder();
  const [confDir, bin, calls, failing] = ['multus', 'bin', 'calls', 'failing'].map((name) =>
    join(folder.path, name),
  ) as [string, string, string, string];
  for (const one of [confDir, bin]) mkdirSync(one);
  const gcs: unknown[] = [];
  const agent = await serve(`unix:${folder.socket}`, {
    add: () => reply(confDir),
    del: () => ({}),
    gc: (request) => {
      gcs.push(request.validAttachments);
      return {};
    },
    check: () => ({ error: { code: 3, msg: 'the agent has no such attachment' } }),
  });
  t.teardown(() => {
    agent.close();
    folder.remove();
  });
  for (const name of ['macvlan', 'tuning']) {
    const script = `#!/bin/sh
conf=$(cat)
printf '%s\\n' "{\\"plugin\\":\\"${name}\\",\\"command\\":\\"$CNI_COMMAND\\",\\"env\\":\\"$CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS $CNI_PATH\\",\\"conf\\":$conf}" >> ${calls}
if [ -e ${failing} ] && grep -q "^$CNI_COMMAND ${name}$" ${failing}; then echo '{"code":110,"msg":"${name} says no"}'; exit 1; fi
if [ "$CNI_COMMAND" = ADD ]; then echo '${RESULT}'; fi
`;
    writeFileSync(join(bin, name), script);
    chmodSync(join(bin, name), 0o755);
  }
  const invoke = async (
    command: string,
    { conf = {}, env = {} }: { readonly conf?: Conf; readonly env?: Conf } = {},
  ) => {
    const { code, stdout } = await run({
      name: 'tke-route-eni',
      args: [],
      env: {
        ...{ CNI_COMMAND: command, CNI_CONTAINERID: 'c1', CNI_NETNS: '/run/netns/x', CNI_IFNAME: 'eth0' },
        ...{ CNI_PATH: `/nowhere:${bin}`, PATH: process.env['PATH'], ...(env as Record<string, string>) },
      },
      readStdin: () =>
        JSON.stringify({
          ...{ cniVersion: '1.1.0', name: 'net', type: 'tke-route-eni', backend: `unix:${folder.socket}` },
          ...{ dataDir: join(folder.path, 'data'), ...conf },
        }),
      nowMs: () => 1_700_000_000_000,
      bootMs: () => 42_000,
    });
    return { code, stdout, json: stdout === '' ? undefined : (JSON.parse(stdout) as Conf) };
  };
  return {
    ...{ invoke, confDir, bin, gcs },
    write: (file: string, content: unknown): void =>
      writeFileSync(join(confDir, file), typeof content === 'string' ? content : JSON.stringify(content)),
    fail: (what: string): void => writeFileSync(failing, `${what}\n`),
    /** The calls since the last look. */
    calls: (): readonly Call[] => {
      if (!existsSync(calls)) return [];
      const lines = readFileSync(calls, 'utf8').trim().split('\n');
      rmSync(calls);
      return lines.map((line) => JSON.parse(line) as Call);
    },
    records: (): readonly string[] => {
      const records = join(folder.path, 'data', 'delegates');
      return existsSync(records) ? readdirSync(records) : [];
    },
  };
}

function delegateTo(network: string): (confDir: string) => ReplyInitOf<'add'> {
  return (confDir) => ({ error: { code: 7, msg: REFUSAL }, delegate: { network, confDir } });
}

const SINGLE = { cniVersion: '0.4.0', name: 'storage', type: 'macvlan', master: 'eth1' };
const LIST = {
  ...{ cniVersion: '1.1.0', name: 'storage' },
  plugins: [{ type: 'macvlan', capabilities: { portMappings: true } }, { type: 'tuning' }],
};

test('ADD: the plugin of the first file with the name is called, and its result is passed on as it is', async (t) => {
  const scene = await openScene(t);
  scene.write('20-later.conf', { ...SINGLE, master: 'eth9' });
  scene.write('10-storage.conf', SINGLE);
  scene.write('00-broken.conf', '{');
  scene.write('05-other.conf', { ...SINGLE, name: 'other' });
  scene.write('01-notes.txt', SINGLE);
  const { code, stdout } = await scene.invoke('ADD');
  t.deepEqual([code, stdout.trim()], [0, RESULT]);
  const env = `c1 eth0 /run/netns/x /nowhere:${scene.bin}`;
  t.deepEqual(scene.calls(), [{ plugin: 'macvlan', command: 'ADD', env, conf: SINGLE }]);
  t.deepEqual(scene.records(), ['c1@eth0.json']);
});

test('ADD, CHECK, DEL: a list is run as a runtime runs it', async (t) => {
  const scene = await openScene(t);
  scene.write('10-storage.conflist', LIST);
  const runtimeConfig = { portMappings: [], bandwidth: {} };
  t.is((await scene.invoke('ADD', { conf: { runtimeConfig } })).code, 0);
  const base = { cniVersion: '1.1.0', name: 'storage' };
  const [first, second] = [
    { ...LIST.plugins[0], ...base, runtimeConfig: { portMappings: [] } },
    { type: 'tuning', ...base },
  ];
  const prevResult = JSON.parse(RESULT) as Conf;
  t.deepEqual(
    scene.calls().map(({ plugin, command, conf }) => [plugin, command, conf]),
    [
      ['macvlan', 'ADD', first],
      ['tuning', 'ADD', { ...second, prevResult }],
    ],
  );
  t.is((await scene.invoke('CHECK', { conf: { prevResult, runtimeConfig } })).code, 0);
  t.deepEqual(
    scene.calls().map(({ plugin, command, conf }) => [plugin, command, conf['prevResult']]),
    [
      ['macvlan', 'CHECK', prevResult],
      ['tuning', 'CHECK', prevResult],
    ],
  );
  // After a reboot: no namespace, and the file is gone.
  rmSync(join(scene.confDir, '10-storage.conflist'));
  t.is((await scene.invoke('DEL', { conf: { prevResult }, env: { CNI_NETNS: '' } })).code, 0);
  t.deepEqual(
    scene.calls().map(({ plugin, command, conf }) => [plugin, command, conf['prevResult']]),
    [
      ['tuning', 'DEL', prevResult],
      ['macvlan', 'DEL', prevResult],
    ],
  );
  t.deepEqual(scene.records(), []);
  t.is((await scene.invoke('DEL')).code, 0, 'a second DEL');
  t.deepEqual(scene.calls(), []);
});

test('ADD: what a plugin refuses is undone in reverse, and its error is the answer', async (t) => {
  const scene = await openScene(t);
  scene.write('10-storage.conflist', LIST);
  scene.fail('ADD tuning');
  const { code, json } = await scene.invoke('ADD');
  t.is(code, 1);
  t.like(json, { code: 110, msg: 'tuning of network storage (CNI 1.1.0) failed: tuning says no' });
  t.deepEqual(
    scene.calls().map(({ plugin, command }) => `${command} ${plugin}`),
    ['ADD macvlan', 'ADD tuning', 'DEL tuning', 'DEL macvlan'],
  );
  t.deepEqual(scene.records(), []);
});

test('DEL: a plugin that fails, or is not there, is called again by the next DEL', async (t) => {
  const scene = await openScene(t);
  scene.write('10-storage.conf', SINGLE);
  await scene.invoke('ADD');
  scene.fail('DEL macvlan');
  t.like((await scene.invoke('DEL')).json, { code: 110 });
  t.deepEqual(scene.records(), ['c1@eth0.json']);
  const { json } = await scene.invoke('DEL', { env: { CNI_PATH: '/nowhere' } });
  t.like(json, { code: 5, msg: 'macvlan of network storage is in no folder of CNI_PATH, /nowhere' });
  scene.fail('');
  t.is((await scene.invoke('DEL')).code, 0);
  t.deepEqual(scene.records(), []);
});

test('ADD: a name that no file has: the error names what is accepted, and files that were not read', async (t) => {
  const scene = await openScene(t);
  const accepted = `${REFUSAL}; nor is it the network of a file in ${scene.confDir}, which has`;
  t.like((await scene.invoke('ADD')).json, { code: 7, msg: `${accepted} none` });
  scene.write('10-a.conf', { ...SINGLE, name: 'backup' });
  scene.write('11-b.conflist', { ...LIST, name: 'archive' });
  scene.write('12-c.conf', { name: 'storage', type: '../sh' });
  scene.write('13-d.conf', { name: 'storage', type: 'tke-route-eni' });
  scene.write('14-e.conf', JSON.stringify({ ...SINGLE, filler: 'x'.repeat(300_000) }));
  execFileSync('mkfifo', [join(scene.confDir, '15-f.conf')]);
  const { json } = await scene.invoke('ADD');
  t.like(json, { code: 7, msg: `${accepted} archive, backup` });
  const details = String(json?.['details']);
  for (const why of [/12-c.conf: type/, /would call itself/, /14-e.conf: .* more than/, /15-f.conf: .* is a FIFO/])
    t.regex(details, why);
  t.deepEqual([scene.calls(), scene.records()], [[], []]);
});

test('ADD: an agent that delegates nothing, as one of an older release, is answered as before', async (t) => {
  const scene = await openScene(t, () => ({ error: { code: 7, msg: REFUSAL } }));
  scene.write('10-storage.conf', SINGLE);
  t.like((await scene.invoke('ADD')).json, { code: 7, msg: REFUSAL });
  t.deepEqual(scene.calls(), []);
});

test('ADD: an agent on a TCP port, in whose place others may answer, delegates nothing', async (t) => {
  const scene = await openScene(t);
  scene.write('10-storage.conf', SINGLE);
  const agent = await serve('127.0.0.1:0', { add: () => delegateTo('storage')(scene.confDir) });
  t.teardown(() => agent.close());
  const { json } = await scene.invoke('ADD', { conf: { backend: `127.0.0.1:${agent.port}` } });
  t.like(json, { code: 7, msg: REFUSAL });
  t.deepEqual(scene.calls(), []);
});

test('CHECK: the error of a plugin is the answer', async (t) => {
  const scene = await openScene(t);
  scene.write('10-storage.conf', SINGLE);
  await scene.invoke('ADD');
  scene.fail('CHECK macvlan');
  t.like((await scene.invoke('CHECK', { conf: { prevResult: JSON.parse(RESULT) } })).json, { code: 110 });
});

test('GC: what the runtime does not list is ended by its own plugins, and networks of 1.1.0 collect themselves', async (t) => {
  const scene = await openScene(t);
  scene.write('10-storage.conflist', LIST);
  await scene.invoke('ADD', { env: { CNI_CONTAINERID: 'gone' } });
  await scene.invoke('ADD');
  scene.calls();
  const valid = [{ containerID: 'c1', ifname: 'eth0' }];
  t.is((await scene.invoke('GC', { conf: { 'cni.dev/valid-attachments': valid } })).code, 0);
  t.deepEqual(
    scene
      .calls()
      .map(({ plugin, command, env, conf }) => [command, plugin, env.split(' ')[0], conf['cni.dev/valid-attachments']]),
    [
      ['DEL', 'tuning', 'gone', undefined],
      ['DEL', 'macvlan', 'gone', undefined],
      ['GC', 'macvlan', 'c1', valid],
      ['GC', 'tuning', 'c1', valid],
    ],
  );
  t.deepEqual(scene.records(), ['c1@eth0.json']);
  t.is(scene.gcs.length, 1, 'the agent collects too');
});
