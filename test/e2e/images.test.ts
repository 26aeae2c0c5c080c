import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import test from 'ava';
import { run, tryRun } from '../../sim/support/run.ts';
import type { ImageName } from '../../tools/image/contents.ts';
import { buildImages } from '../../tools/image.ts';
import { hasLauncher } from '../support/executables.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type OpenImages, openImages, SECRETS } from './support/open-images.ts';

const NAMES = [
  'tke-eni-agent',
  'tke-eni-ipamd',
  'tke-eni-ip-scheduler',
  'tke-eni-ip-webhook',
  'tke-cloud-controller-manager',
] as const;
const TRIPLET = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }[process.arch as 'x64' | 'arm64'];
const LIBRARY_DIR = `usr/lib/${TRIPLET}`;
const LOADER = process.arch === 'x64' ? 'usr/lib64/ld-linux-x86-64.so.2' : 'usr/lib/ld-linux-aarch64.so.1';

/** Every file that may be in an image, by hand. A library that a tool gains is a change to look at. */
const BASE = [
  'bin',
  'lib',
  'lib64',
  'sbin',
  'etc/group',
  'etc/nsswitch.conf',
  'etc/passwd',
  'var/run',
  LOADER,
  ...[
    'libatomic.so.1',
    'libc.so.6',
    'libdl.so.2',
    'libgcc_s.so.1',
    'libm.so.6',
    'libpthread.so.0',
    'libstdc++.so.6',
  ].map((name) => `${LIBRARY_DIR}/${name}`),
];
const FILES: Readonly<Record<ImageName, readonly string[]>> = {
  'tke-eni-ipamd': [...BASE, 'etc/ssl/certs/ca-certificates.crt', 'usr/bin/tke-eni-ipamd'],
  'tke-eni-ip-scheduler': [...BASE, 'usr/bin/tke-eni-ip-scheduler'],
  'tke-eni-ip-webhook': [...BASE, 'usr/bin/tke-eni-ip-webhook'],
  'tke-cloud-controller-manager': [
    ...BASE,
    'etc/ssl/certs/ca-certificates.crt',
    'usr/bin/tke-cloud-controller-manager',
  ],
  'tke-eni-agent': [
    ...BASE,
    'etc/protocols',
    'opt/tke-eni/bin/tke-direct-eni',
    'opt/tke-eni/bin/tke-eni-ipamc',
    ...(hasLauncher ? ['opt/tke-eni/bin/tke-eni-launcher'] : []),
    'opt/tke-eni/bin/tke-eni-lib/libatomic.so.1',
    'opt/tke-eni/bin/tke-route-eni',
    'usr/bin/dash',
    'usr/bin/ffi-rs.node',
    'usr/bin/sh',
    'usr/bin/tke-eni',
    'usr/bin/tke-eni-agent',
    'usr/bin/unshare',
    'usr/sbin/conntrack',
    'usr/sbin/nft',
    ...['bandwidth', 'bridge', 'host-local', 'loopback', 'portmap'].map((name) => `usr/lib/cni/${name}`),
    ...[
      'libbsd.so.0',
      'libedit.so.2',
      'libgmp.so.10',
      'libjansson.so.4',
      'libmd.so.0',
      'libmnl.so.0',
      'libnetfilter_conntrack.so.3',
      'libnfnetlink.so.0',
      'libnftables.so.1',
      'libnftnl.so.11',
      'librt.so.1',
      'libtinfo.so.6',
      'libxtables.so.12',
    ].map((name) => `${LIBRARY_DIR}/${name}`),
  ],
};

const dir = createTempDir('images');
let opened: OpenImages;

test.before(async () => {
  opened = await openImages(dir);
});
test.after.always(() => dir.close());

const image: OpenImages['image'] = (name) => opened.image(name);
const inImage: OpenImages['inImage'] = (...args) => opened.inImage(...args);
const start: OpenImages['start'] = (...args) => opened.start(...args);

function linesOf(name: ImageName): readonly string[] {
  return image(name).listing.trim().split('\n');
}

for (const name of NAMES) {
  test(`${name}: has the files of the list and no other`, (t) => {
    // `-rwxr-xr-x 0/0 123 1970-01-01 00:00 usr/bin/x`, and ` -> y` or ` link to y` after it.
    const paths = linesOf(name).flatMap((line) => /^[^d]\S* +\S+ +\d+ \S+ \S+ (\S+)/.exec(line)?.[1] ?? []);
    t.deepEqual(paths.sort(), [...FILES[name]].sort());
  });

  test(`${name}: all is root's, nothing is setuid, nothing but /tmp can be written by others`, (t) => {
    const lines = linesOf(name);
    t.true(lines.length > 20);
    t.deepEqual(
      lines.filter((line) => !/^\S+ 0\/0 /.test(line)),
      [],
    );
    const notLinks = lines.filter((line) => !line.startsWith('l'));
    t.deepEqual(
      notLinks.filter((line) => /^.{3}[sS]|^.{6}[sS]/.test(line)),
      [],
    );
    t.deepEqual(
      notLinks.filter((line) => line[8] === 'w').map((line) => line.split(' ').at(-1)),
      ['tmp/'],
    );
  });
}

test('tke-eni-agent: the three CNI executables are one file', async (t) => {
  const folder = `${image('tke-eni-agent').root}/opt/tke-eni/bin`;
  t.is((await run(['find', folder, '-type', 'f', '-links', '3', '-perm', '755'])).trim().split('\n').length, 3);
});

test('images: say who they run as, what they start and what they are', (t) => {
  const { config: agent } = image('tke-eni-agent');
  const { config: ipamd } = image('tke-eni-ipamd');
  t.is(agent['User'], '0:0');
  const { config: webhook } = image('tke-eni-ip-webhook');
  t.is(ipamd['User'], '65532:65532');
  t.is(webhook['User'], '65532:65532');
  t.deepEqual(webhook['Entrypoint'], ['/usr/bin/tke-eni-ip-webhook']);
  t.deepEqual(agent['Entrypoint'], ['/usr/bin/tke-eni-agent']);
  t.deepEqual(ipamd['Entrypoint'], ['/usr/bin/tke-eni-ipamd']);
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const { Labels } of [agent, ipamd, webhook] as { Labels: Record<string, string> }[]) {
    t.is(Labels['org.opencontainers.image.version'], version);
    t.regex(Labels['org.opencontainers.image.revision'] ?? '', /^[0-9a-f]{7,}(\.dirty)?$|^$/);
  }
});

test('buildImages: makes the same tar again from scratch, and leaves alone what is up to date', async (t) => {
  const names = ['tke-eni-ipamd'] as const;
  const again = { names, outDir: dir.join('again') };
  const [first] = await buildImages({ names });
  const [second] = await buildImages(again);
  t.is(await digest(second?.path ?? ''), await digest(first?.path ?? ''));
  const before = statSync(second?.path ?? '').ino;
  await buildImages(again);
  t.is(statSync(second?.path ?? '').ino, before);
});

async function digest(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

for (const name of NAMES) {
  test.serial(`${name}: starts in a read-only root`, async (t) => {
    for (const flag of ['--version', '--help']) {
      const ended = await inImage(name, [`/usr/bin/${name}`, flag]);
      t.is(ended.code, 0, ended.stderr);
      t.regex(ended.stdout, flag === '--help' ? new RegExp(`^Usage: ${name} `) : /^\d+\.\d+\.\d+/);
    }
  });
}

test.serial('tke-eni-agent: every CNI executable runs in a read-only root', async (t) => {
  const ours = ['tke-route-eni', 'tke-direct-eni', 'tke-eni-ipamc'].map((name) => `/opt/tke-eni/bin/${name}`);
  const others = ['bandwidth', 'bridge', 'host-local', 'loopback', 'portmap'].map((name) => `/usr/lib/cni/${name}`);
  for (const path of [...ours, ...others]) {
    const ended = await inImage('tke-eni-agent', [path], ['CNI_COMMAND=VERSION']);
    t.is(ended.code, 0, `${path}: ${ended.stderr}`);
    t.true(Array.isArray(JSON.parse(ended.stdout).supportedVersions), path);
  }
});

test.serial('tke-eni-agent: the ops CLI answers in a read-only root', async (t) => {
  const version = await inImage('tke-eni-agent', ['tke-eni', 'version']);
  t.is(version.code, 0, version.stderr);
  t.regex(version.stdout, /^\d+\.\d+\.\d+/);
  // The kernel alone tells: no agent runs in there.
  const links = await inImage('tke-eni-agent', ['tke-eni', 'links', '-o', 'json']);
  t.is(links.code, 0, links.stderr);
});

test.serial(
  'tke-eni-agent: lists a ruleset in a passing namespace as it does at work, and reaches conntrack',
  async (t) => {
    const rules = 'table inet x { chain c { meta l4proto tcp accept; ip protocol icmp drop; tcp dport 22 drop; }; }';
    const script = `printf '${rules}' | nft -f - && nft -n -s list table inet x`;
    const listed = await inImage('tke-eni-agent', ['unshare', '--net', 'sh', '-c', script]);
    t.is(listed.code, 0, listed.stderr);
    t.regex(listed.stdout, /meta l4proto 6 accept\n.*ip protocol 1 drop\n.*tcp dport 22 drop/);
    const flushed = await inImage('tke-eni-agent', ['conntrack', '-D', '-f', 'ipv4', '-s', '10.0.0.9']);
    t.regex(flushed.stderr, /0 flow entries have been deleted/);
  },
);

test.serial('tke-eni-agent: in a read-only root it installs its executables, loads nftables and serves', async (t) => {
  await using started = await opened.startAgent();
  t.regex(started.child.stdout, /"ruleMode":"compact"/, 'the mode that needs nft');
});

test.serial('tke-eni-agent: `kubectl exec` of the ops CLI finds agent, journal, kernel and nftables', async (t) => {
  await using started = await opened.startAgent();
  const ask = async (...words: readonly string[]) => {
    const { code, stdout, stderr } = await started.exec('tke-eni', ...words, '-o', 'json');
    t.true(code === 0 || code === 1, `${words.join(' ')}: ${stderr}`);
    t.is(stderr, '', words.join(' '));
    return JSON.parse(stdout);
  };
  t.true((await ask('links')).some((link: { readonly ifname?: string }) => link.ifname === 'lo'));
  t.true((await ask('rules')).length > 3);
  // From the journal: no warning that names are not known.
  t.deepEqual(await ask('pods'), []);
  t.truthy(await ask('status'));
  t.truthy(await ask('diff'));
});

test.serial('tke-eni-ipamd: without rights, a writable folder and an API server it runs, and says so', async (t) => {
  const flags = [`--kubeconfig=${SECRETS}/kubeconfig`, '--clusterid=cls-image001', '--region=ap-guangzhou'];
  const args = ['/usr/bin/tke-eni-ipamd', '--metrics-address=127.0.0.1:61681', ...flags];
  const env = ['TENCENTCLOUD_SECRET_ID=x', 'TENCENTCLOUD_SECRET_KEY=y'];
  await using started = start('tke-eni-ipamd', args, env);
  const { child, pidOf } = started;
  let status = '';
  await waitUntil(
    async () => {
      if (!child.isRunning) throw new Error(`ended: ${child.stderr}${child.stdout}`);
      const pid = await pidOf();
      if (pid === 0) return false;
      const get = ['busybox', 'wget', '-q', '-O', '-', 'http://127.0.0.1:61681/healthz'];
      status = readFileSync(`/proc/${pid}/status`, 'utf8');
      return (await tryRun(['nsenter', `--net=/proc/${pid}/ns/net`, ...get])).code === 0;
    },
    { what: 'healthz', timeoutMs: 60_000, everyMs: 200, explain: () => child.stderr + child.stdout },
  );
  t.regex(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
  t.regex(status, /^CapEff:\t0+$/m);
});
