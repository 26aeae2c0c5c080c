// Whole bundles of a node: seven seconds of a core.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { openJournal } from '../../../../agent/journal/journal.ts';
import { systemClock } from '../../../../runtime/clock.ts';
import { run } from '../../../../sim/support/run.ts';
import { createPodNetns } from '../../../support/pod-netns.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { openTerminal } from '../../../support/terminal.ts';
import { waitUntil } from '../../../support/wait-until.ts';
import { runCaptured } from '../../agent/captured.ts';
import { startFakeAgent } from '../../agent/fake-agent.ts';
import { JOURNAL_SAMPLE, LEASE_SAMPLE, POOL_SAMPLE, SUMMARY_SAMPLE } from '../../agent/samples.ts';

/** Words that nobody else would write, so that one which got through is seen. */
const planted = Array.from({ length: 16 }, () => `PLANTED${randomBytes(5).toString('hex')}`);
const secret = (index: number) => planted[index] ?? '';

const KUBECONFIG = `
apiVersion: v1
users:
- name: kubelet
  user:
    client-key-data: ${Buffer.from(`key ${secret(0)}`).toString('base64')}
    token: ${secret(1)}
    password: |
      ${secret(2)}
`;

const LOG = [
  `{"level":"info","msg":"env","TENCENTCLOUD_SECRET_ID":"${secret(3)}","TENCENTCLOUD_SECRET_KEY":"${secret(4)}"}`,
  `{"level":"info","body":"{\\"data\\":{\\"password\\":\\"${secret(5)}\\"}}"}`,
  `2026-01-01T00:00:00Z stderr F Authorization: Bearer ${secret(6)}`,
  `calling https://admin:${secret(7)}@10.0.0.1/v1`,
  '-----BEGIN RSA PRIVATE KEY-----',
  secret(8),
  '-----END RSA PRIVATE KEY-----',
  KUBECONFIG,
  'kernel changed: ip route add 10.0.2.10/32 dev eni0123456789a table 3999',
].join('\n');

const CONFLIST = {
  cniVersion: '1.0.0',
  name: 'tke-route-eni',
  plugins: [
    { type: 'tke-route-eni', mtu: 1500 },
    { type: 'mystery', etcd_pin: secret(9), nested: { anything: secret(10) }, password: secret(11) },
  ],
};

/** A node in folders and a namespace of its own, with secrets everywhere. */
async function openNode(t: ExecutionContext) {
  const dir = createTempDir('bundle');
  t.teardown(dir.close);
  const put = (path: string, text: string) => {
    mkdirSync(dirname(dir.join(path)), { recursive: true });
    writeFileSync(dir.join(path), text);
  };
  put('root/etc/cni/net.d/10-tke.conflist', JSON.stringify(CONFLIST));
  put('root/etc/cni/net.d/multus.d/x', '');
  put('root/etc/cni/net.d/admin.kubeconfig', KUBECONFIG);
  put('root/var/log/pods/kube-system_tke-eni-agent-abcde_0b3f5a77/agent/0.log', LOG);
  put('root/var/log/pods/default_web-0_1234/app/0.log', `of no concern ${secret(12)}`);
  put('root/etc/os-release', 'NAME=Test\n');
  mkdirSync(dir.join('state'));
  const journal = openJournal(dir.join('state/journal.db'), { clock: systemClock });
  for (const eni of JOURNAL_SAMPLE.enis) journal.putEni(eni);
  journal.putLease({ ...LEASE_SAMPLE, netns: `/run/netns/x?token=${secret(13)}` });
  journal.close();
  put('state/node.json', JSON.stringify({ agentRelease: '1', unknown: secret(14) }));
  const agent = await startFakeAgent(dir.join('agent.sock'), {
    pool: POOL_SAMPLE,
    summary: { ...SUMMARY_SAMPLE, lastPassError: `refused: secret=${secret(15)}` },
    recorder: () => ({
      pods: [{ pod: 'default/web-0', operations: [{ kind: 1, outcome: 2, text: `api token: ${secret(15)} refused` }] }],
    }),
  });
  t.teardown(agent.close);
  const netns = await createPodNetns(`tke-test-${randomBytes(4).toString('hex')}`);
  t.teardown(() => netns.close());
  await netns.nft(`table inet other { chain c {\n counter comment "password=${secret(15)}"\n}\n}\n`);
  // A kernel without flowtables has a table of this name without one.
  await netns.nft('table inet tke_eni_flows { chain forward { type filter hook forward priority filter + 10; }; }');
  // A name would be looked for below the folder that stands for the host's files; /proc is everybody's.
  const holder = netns.start(['sleep', '300']);
  t.teardown(async () => {
    await holder.stop('SIGKILL');
  });
  const inside = `/proc/${holder.pid}/ns/net`;
  await waitUntil(() => statSync(inside).ino === statSync(netns.path).ino, { what: 'the process in the namespace' });
  const globals = [
    ...['--netns', inside, '--socket', dir.join('agent.sock'), '--state-dir', dir.join('state')],
    ...['--host-root', dir.join('root')],
  ];
  return { dir, netns, globals };
}

/** Unpacks with the system's tar; all files, by their path in the archive. */
async function unpack(archive: string, into: string): Promise<ReadonlyMap<string, string>> {
  mkdirSync(into);
  await run(['tar', '-xzf', archive, '-C', into]);
  const names = await run(['find', join(into, 'tke-eni-bundle'), '-type', 'f', '-printf', '%P\n']);
  const files = new Map<string, string>();
  for (const name of names.trim().split('\n').toSorted()) {
    files.set(name, await run(['cat', join(into, 'tke-eni-bundle', name)]));
  }
  return files;
}

test('bundle: has what helps, says what is missing, and holds none of the planted secrets', async (t) => {
  const node = await openNode(t);
  // What is planted must be there to be found: the folders, the rule set and the agent tell it to anybody else.
  t.true((await run(['grep', '-r', 'PLANTED', node.dir.path])).includes(secret(9)));
  t.true((await node.netns.run(['nft', 'list', 'ruleset'])).includes(secret(15)));
  const path = node.dir.join('out.tar.gz');
  const { code, stdout, stderr } = await runCaptured(['bundle', ...node.globals, '-o', path]);
  t.is(stdout, `${path}\n`);
  t.is(code, 1, 'node.json has not the shape that it must have');
  t.regex(stderr, /left out: node\/node\.json/);
  t.is(statSync(path).mode & 0o777, 0o600);

  const files = await unpack(path, node.dir.join('unpacked'));
  const all = [...files].map(([name, text]) => `${name}\n${text}`).join('\n');
  for (const [index, word] of planted.entries()) {
    t.false(all.includes(word), `secret ${index} of the test got through`);
    t.false(all.includes(Buffer.from(`key ${word}`).toString('base64').slice(0, 16)), `secret ${index} in base64`);
  }
  t.false(all.includes('BEGIN RSA'));

  const manifest = JSON.parse(files.get('manifest.json') ?? '');
  const listed = manifest.parts.map((part: { path: string; missing?: string; skipped?: string }) => {
    if (part.missing !== undefined) return `${part.path}.missing`;
    return part.skipped === undefined ? part.path : `${part.path}.skipped`;
  });
  t.deepEqual([...files.keys()].filter((name) => name !== 'manifest.json').toSorted(), listed.toSorted());
  const has = (name: string, pattern: RegExp) => t.regex(files.get(name) ?? `no ${name}`, pattern);
  has('agent/recorder.json', /"default\/web-0"/);
  has('agent/pool.json', /"10\.0\.2\.10"/);
  has('node/journal.json', /"a1b2c3d4e5f60718"/);
  has('node/cni-conf.json', /"etcd_pin": "\[removed: text\]"/);
  has('node/cni-conf.json', /"mtu": 1500/);
  has('node/node.json.missing', /node\.json/);
  has('node/sysctls.json', /net\.ipv4\.ip_forward/);
  has('node/machine.json', /NAME=Test/);
  has('kernel/nft-ruleset.txt', /table inet other/);
  // Of the node's namespace, which has lo alone, not of the test's.
  has('kernel/link-statistics.txt', /^# \/proc\/net\/dev\n.*\n.*\n +lo: .*\n$/);
  has('kernel/sockets.txt', /^# \/proc\/net\/sockstat\nsockets: used \d+\nTCP: inuse 0 /);
  has('kernel/fast-path.json', /"flowCount": 0/);
  has('kernel/fast-path.json', /"flowtable": \[\s+"table inet tke_eni_flows \{",[^\]]*hook forward priority 10/);
  has('logs/00-kube-system_tke-eni-agent-abcde_0b3f5a77-agent-0.log', /kernel changed: ip route add 10\.0\.2\.10\/32/);
  has('status.txt', /0\.1\.0\+0123abc on node-1/);
  has('dump/state.ip', /ip /);
  has('dump/routes.txt', /./);
  has('explain-broken-pods.txt', /1 Pods, 1 looked at, 1 broken/);
  has('doctor.json', /"findings"/);
  has('graph.html', /^<!doctype html>[\s\S]*<\/html>\n$/);
  has('graph.html', /10\.0\.2\.10/);
});

test('bundle: follows no log to anything else, waits at no pipe, and keeps names of files out of the archive', async (t) => {
  const node = await openNode(t);
  const folder = node.dir.join('root/var/log/pods/kube-system_tke-eni-agent-abcde_0b3f5a77/agent');
  const word = `PLANTED${randomBytes(5).toString('hex')}`;
  writeFileSync(node.dir.join('root/etc/shadow'), word);
  writeFileSync(node.dir.join('outside'), word);
  symlinkSync('/etc/shadow', join(folder, '1.log'));
  await run(['mkfifo', join(folder, '2.log')]);
  const other = node.dir.join('root/var/log/pods/kube-system_tke-eni-agent-fghij_1');
  mkdirSync(join(other, 'agent'), { recursive: true });
  symlinkSync(node.dir.join('outside'), join(other, 'agent', '0.log'));
  writeFileSync(join(other, 'agent', `${'語'.repeat(60)}\u001b]0;x.log`), 'a line');
  await run(['mkfifo', node.dir.join('root/etc/cni/net.d/00-pipe.conf')]);
  const path = node.dir.join('out.tar.gz');
  const { code } = await runCaptured(['bundle', ...node.globals, '-o', path]);
  t.is(code, 1);
  const files = await unpack(path, node.dir.join('unpacked'));
  t.false([...files].some(([name, text]) => name.includes(word) || text.includes(word)));
  t.true(
    [...files.keys()].every((name) => /^[\w./-]+$/.test(name)),
    [...files.keys()].join('\n'),
  );
  const told = [...files].filter(([name]) => name.startsWith('logs/')).map(([, text]) => text);
  t.true(
    told.some((text) => /1\.log leads to .*\/etc\/shadow, which is no log/.test(text)),
    told.join('\n'),
  );
  t.true(
    told.some((text) => /2\.log is no plain file/.test(text)),
    told.join('\n'),
  );
  t.true(told.includes('a line'));
});

test('bundle: refuses at once where it cannot write, and leaves alone what is no file', async (t) => {
  const dir = createTempDir('bundle');
  t.teardown(dir.close);
  mkdirSync(dir.join('folder'));
  await run(['mknod', dir.join('null'), 'c', '1', '3']);
  symlinkSync(dir.join('null'), dir.join('link'));
  for (const name of ['folder', 'null', 'link', 'no/such/file']) {
    const { code, stderr } = await runCaptured(['bundle', '-o', dir.join(name)]);
    t.is(code, 2, name);
    t.regex(stderr, /cannot be written/);
  }
  t.true(statSync(dir.join('null')).isCharacterDevice());
  t.deepEqual(readdirSync(dir.path).toSorted(), ['folder', 'link', 'null']);
});

test('bundle: -o - writes the archive to standard output, and to no terminal', async (t) => {
  const node = await openNode(t);
  rmSync(node.dir.join('state/node.json'));
  const { code, stdout, stderr, bytes } = await runCaptured(['bundle', ...node.globals, '-o', '-']);
  t.is(stdout, '');
  t.is(code, 1, 'node.json is missing');
  t.regex(stderr, /left out: node\/node\.json/);
  t.false(existsSync('-'));
  writeFileSync(node.dir.join('out.tar.gz'), bytes);
  const files = await unpack(node.dir.join('out.tar.gz'), node.dir.join('unpacked'));
  t.regex(files.get('status.txt') ?? '', /0\.1\.0\+0123abc on node-1/);

  const refused = await runCaptured(['bundle', ...node.globals, '-o', '-'], { isTerminal: true });
  t.is(refused.code, 2);
  t.is(refused.bytes.length, 0);
  t.regex(refused.stderr, /standard output is a terminal.*\n +next: redirect it/);
});

test('bundle: leaves nothing when it is interrupted', async (t) => {
  const node = await openNode(t);
  const out = node.dir.join('out');
  mkdirSync(out);
  const argv = [process.execPath, 'cli/main.ts', 'bundle', ...node.globals, '-o', join(out, 'x.tar.gz')];
  await using terminal = await openTerminal(argv, { columns: 200 });
  await terminal.waitFor('a part', (screen) => screen.some((line) => /^\d+\/\d+ /.test(line)));
  terminal.type('\u0003');
  t.not(await terminal.exited, 0);
  t.deepEqual(readdirSync(out), []);
});

test('bundle: is made without an agent, a journal and rights to write elsewhere', async (t) => {
  const dir = createTempDir('bundle');
  t.teardown(dir.close);
  const netns = await createPodNetns(`tke-test-${randomBytes(4).toString('hex')}`);
  t.teardown(() => netns.close());
  const globals = ['--netns', netns.name, '--socket', dir.join('no.sock'), '--state-dir', dir.join('none')];
  const path = dir.join('out.tar.gz');
  const { code, stderr } = await runCaptured(['bundle', ...globals, '--host-root', dir.path, '-o', path]);
  t.is(code, 1);
  t.regex(stderr, /left out: agent\/pool\.json: the agent does not answer/);
  const files = await unpack(path, dir.join('unpacked'));
  t.regex(files.get('status.txt.missing') ?? '', /NO_AGENT/);
  t.regex(files.get('logs/agent.log.skipped') ?? '', /no log of a Pod/);

  const refused = await runCaptured(['bundle', ...globals, '-o', dir.join('no/such/folder/x.tar.gz')]);
  t.is(refused.code, 2);
  t.regex(refused.stderr, /cannot be written/);
  t.false(existsSync(dir.join('no')));
});
