import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { SUPPORTED_VERSIONS } from '../../cni-plugins/skel/version.ts';
import { buildExecutable } from '../cni-plugins/support/built.ts';
import { callExecutable } from '../cni-plugins/support/call-executable.ts';
import { createFakeAgent, makeFolder, serve } from '../cni-plugins/support/test-agent.ts';

const binDir = await buildExecutable('tke-route-eni');
const PLUGIN = join(binDir, 'tke-route-eni');
const NAMES = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'];

const v4 = (n: number) => ({ address: `10.0.0.${n + 5}/32`, gateway: '169.254.1.1' });

function envOf(command: string, more: Readonly<Record<string, string>> = {}) {
  const sandbox = { CNI_CONTAINERID: 'c1', CNI_NETNS: '/run/netns/x', CNI_IFNAME: 'eth0', CNI_PATH: binDir };
  return { CNI_COMMAND: command, ...sandbox, ...more };
}

function confOf(socket: string, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    cniVersion: '1.1.0',
    name: 'net',
    type: 'tke-route-eni',
    backend: `unix:${socket}`,
    ...more,
  });
}

test('executables: are one file under three names', (t) => {
  const inodes = NAMES.map((name) => statSync(join(binDir, name)).ino);
  t.is(new Set(inodes).size, 1);
});

for (const cniVersion of SUPPORTED_VERSIONS) {
  test(`executables: VERSION, ADD, CHECK, DEL, DEL in version ${cniVersion}`, async (t) => {
    const folder = makeFolder();
    t.teardown(folder.remove);
    const fake = createFakeAgent(v4);
    const agent = await serve(`unix:${folder.socket}`, fake.answers);
    t.teardown(agent.close);
    const conf = confOf(folder.socket, { cniVersion });
    const version = await callExecutable([PLUGIN], envOf('VERSION'), conf);
    t.deepEqual(version.json, { cniVersion, supportedVersions: [...SUPPORTED_VERSIONS] });
    const add = await callExecutable([PLUGIN], envOf('ADD'), conf);
    const found =
      cniVersion === '0.2.0' ? { ip4: { ip: '10.0.0.5/32' } } : { ips: [{ address: '10.0.0.5/32', interface: 1 }] };
    t.like(add, { code: 0, stderr: '', json: { cniVersion, ...found } });
    if (cniVersion >= '0.4.0') {
      const checkConf = confOf(folder.socket, { cniVersion, prevResult: add.json });
      const check = await callExecutable([PLUGIN], envOf('CHECK'), checkConf);
      t.like(check, { code: 0, stdout: '', stderr: '' });
    }
    for (let round = 0; round < 2; round++) {
      t.like(await callExecutable([PLUGIN], envOf('DEL'), conf), { code: 0, stdout: '', stderr: '' });
    }
    t.is(fake.leases.size, 0);
  });
}

test('executables: STATUS and GC', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const fake = createFakeAgent(v4);
  const agent = await serve(`unix:${folder.socket}`, fake.answers);
  t.teardown(agent.close);
  // By itself STATUS waits two seconds; the agent is this process, which has the other tests to do as well.
  const patient = confOf(folder.socket, { timeoutMs: 60_000 });
  t.like(await callExecutable([PLUGIN], { CNI_COMMAND: 'STATUS' }, patient), { code: 0, stdout: '' });
  await callExecutable([PLUGIN], envOf('ADD'), confOf(folder.socket));
  // As long as a full node's list: more than a pipe holds, and more than an HTTP/2 window.
  const kept = Array.from({ length: 2_000 }, (_, n) => ({ containerID: `${'0'.repeat(56)}${n}`, ifname: 'eth0' }));
  const conf = confOf(folder.socket, { 'cni.dev/valid-attachments': kept });
  t.like(await callExecutable([PLUGIN], { CNI_COMMAND: 'GC' }, conf), { code: 0, stdout: '', stderr: '' });
  t.is(fake.leases.size, 0);
});

test('executables: tell the agent what they were called as, through a hard link or a symbolic one', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const fake = createFakeAgent(v4);
  const agent = await serve(`unix:${folder.socket}`, fake.answers);
  t.teardown(agent.close);
  const link = join(folder.path, 'tke-direct-eni');
  symlinkSync(PLUGIN, link);
  const ipamConf = confOf(folder.socket, { backend: undefined, ipam: { backend: `unix:${folder.socket}` } });
  await callExecutable([PLUGIN], envOf('ADD', { CNI_CONTAINERID: 'a' }), confOf(folder.socket));
  await callExecutable([join(binDir, 'tke-eni-ipamc')], envOf('ADD', { CNI_CONTAINERID: 'b' }), ipamConf);
  await callExecutable([link], envOf('ADD', { CNI_CONTAINERID: 'c' }), confOf(folder.socket));
  t.deepEqual(
    [...fake.leases].map(([key, { plugin }]) => [key, plugin]),
    [
      ['a eth0', 1],
      ['b eth0', 2],
      ['c eth0', 3],
    ],
  );
});

test('executables: thirty ADDs at once get thirty addresses', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const agent = await serve(`unix:${folder.socket}`, createFakeAgent(v4).answers);
  t.teardown(agent.close);
  const conf = confOf(folder.socket);
  const calls = Array.from({ length: 30 }, (_, n) =>
    callExecutable([PLUGIN], envOf('ADD', { CNI_CONTAINERID: `c${n}` }), conf),
  );
  const addresses = (await Promise.all(calls)).map(({ stdout }) => /"address":"([^"]+)"/.exec(stdout)?.[1]);
  t.is(new Set(addresses).size, 30);
  t.false(addresses.includes(undefined));
});

test('executables: ADD answers code 11 and DEL is left on disk when there is no agent', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const add = await callExecutable([PLUGIN], envOf('ADD'), confOf(folder.socket));
  t.like(add, { code: 1, stderr: '', json: { cniVersion: '1.1.0', code: 11 } });
  t.like(await callExecutable([PLUGIN], envOf('DEL', { CNI_NETNS: '' }), confOf(folder.socket)), {
    code: 0,
    stdout: '',
    stderr: '',
  });
  const [file = ''] = readdirSync(join(folder.path, 'deletions'));
  const spooled: unknown = JSON.parse(readFileSync(join(folder.path, 'deletions', file), 'utf8'));
  t.like(spooled, { containerId: 'c1', ifName: 'eth0', netns: '', network: 'net', plugin: 1 });
});

test('executables: a DEL is left on disk when the agent is stopped and takes calls without answering', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const agent = spawn(process.execPath, [
    '-e',
    `require('net').createServer().listen(${JSON.stringify(folder.socket)})`,
  ]);
  t.teardown(() => agent.kill('SIGKILL'));
  while (!existsSync(folder.socket)) await new Promise((resolve) => setTimeout(resolve, 20));
  agent.kill('SIGSTOP');
  const conf = confOf(folder.socket, { timeoutMs: 300 });
  t.like(await callExecutable([PLUGIN], envOf('DEL'), conf), { code: 0, stdout: '' });
  t.is(readdirSync(join(folder.path, 'deletions')).length, 1);
});

for (const [what, env, stdin, expected] of [
  ['an empty stdin', envOf('ADD'), '', { code: 6, msg: /got nothing/ }],
  ['malformed JSON', envOf('ADD'), '{"cniVersion": ', { code: 6, msg: /no JSON/ }],
  ['no environment', {}, '{}', { code: 4, msg: /CNI_COMMAND: expected one of/ }],
  [
    'malformed variables',
    envOf('ADD', { CNI_IFNAME: 'a/b', CNI_CONTAINERID: '?' }),
    '{}',
    { code: 4, msg: /CNI_CONTAINERID.*CNI_IFNAME/ },
  ],
  ['an unsupported version', envOf('ADD'), '{"cniVersion":"0.1.0","name":"n"}', { code: 1, msg: /0\.1\.0/ }],
] as const) {
  test(`executables: answer code ${expected.code} to ${what}, on stdout alone`, async (t) => {
    const { code, json, stderr } = await callExecutable([PLUGIN], env, stdin);
    t.deepEqual({ code, stderr, cni: json?.['code'] }, { code: 1, stderr: '', cni: expected.code });
    t.regex(String(json?.['msg']), expected.msg);
  });
}

test('executables: heed neither NODE_OPTIONS nor a missing HOME', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const trap = join(folder.path, 'trap.js');
  writeFileSync(trap, 'process.stdout.write("trapped")');
  for (const NODE_OPTIONS of ['--no-such-flag', `--require=${trap}`, '--inspect=0']) {
    const called = await callExecutable([PLUGIN], envOf('VERSION', { NODE_OPTIONS }), '{"cniVersion":"1.0.0"}');
    t.like(called, { code: 0, stderr: '', json: { cniVersion: '1.0.0' } }, NODE_OPTIONS);
  }
});

test('executables: work where every file system is read-only', async (t) => {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const agent = await serve(`unix:${folder.socket}`, createFakeAgent(v4).answers);
  t.teardown(agent.close);
  // In a mount namespace of its own, every mount read-only, /dev, /run and /tmp included.
  const script = `
    mount --make-rprivate / && while read -r _ _ _ _ at _; do mount -o remount,bind,ro "$at" 2>/dev/null; done < /proc/self/mountinfo
    ! touch ${folder.path}/written 2>/dev/null || { echo "still writable" >&2; exit 99; }
    exec ${PLUGIN}`;
  const called = await callExecutable(
    ['unshare', '-m', 'sh', '-c', script],
    { ...envOf('ADD'), PATH: process.env['PATH'] ?? '' },
    confOf(folder.socket),
  );
  t.like(called, { code: 0, stderr: '', json: { ips: [{ address: '10.0.0.5/32' }] } });
});

test('executables: write all of an answer to a pipe that is full, and cut what they were sent', (t) => {
  const backend = 'no_such_agent_'.repeat(20_000);
  const folder = makeFolder();
  t.teardown(folder.remove);
  const confPath = join(folder.path, 'conf.json');
  writeFileSync(confPath, confOf('/x', { backend }));
  // A pipe holds 65,536 bytes; its reader sleeps first. JSON may begin with white space.
  const script = `{ printf '%65500s' ''; ${PLUGIN} < ${confPath}; } | { sleep 0.5; cat; }`;
  const out = execFileSync('sh', ['-c', script], {
    env: { ...envOf('ADD'), PATH: process.env['PATH'] ?? '' },
    maxBuffer: 1 << 24,
  });
  const { code, msg } = JSON.parse(out.toString()) as { code: number; msg: string };
  t.is(code, 7);
  t.true(msg.includes('no_such_agent_'.repeat(5)), msg);
  t.true(msg.length < 2_000, `${msg.length} characters`);
});

test('executables: read a stdin and write a stdout that are non-blocking', (t) => {
  const keys = Object.fromEntries(Array.from({ length: 4_000 }, (_, n) => [`no_such_field_${n}`, n]));
  const folder = makeFolder();
  t.teardown(folder.remove);
  const confPath = join(folder.path, 'conf.json');
  writeFileSync(confPath, confOf('/x', { ...keys, mtu: 'wrong' }));
  // O_NONBLOCK is a property of the pipe's end, not of the process that set it.
  const setNonBlocking = `python3 -c 'import fcntl,os
for fd in (0, 1): fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)'`;
  const script = `{ sleep 0.3; cat ${confPath}; } | { ${setNonBlocking}; ${PLUGIN}; } | { sleep 0.8; cat; }`;
  const out = execFileSync('sh', ['-c', script], {
    env: { ...envOf('ADD'), PATH: process.env['PATH'] ?? '' },
    maxBuffer: 1 << 24,
  });
  t.like(JSON.parse(out.toString()), { code: 7 });
});
