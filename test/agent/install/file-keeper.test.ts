import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { CONFLIST_FILE, withdrawConflist } from '../../../agent/install/conflist.ts';
import { RECORD_FILE, recordInstalled } from '../../../agent/install/install-record.ts';
import { type InstallationListener, openInstallation } from '../../../agent/install/installation.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';

/** A node on which all was installed; the clock of the agent is the test's. */
async function openNode(
  t: ExecutionContext,
  listener: Partial<InstallationListener> = {},
  warnings: string[] = [],
  first: { readonly before?: (bin: string) => void; readonly otherAgent?: () => Promise<string | undefined> } = {},
) {
  const dir = createTempDir('file-keeper');
  t.teardown(() => dir.close());
  for (const name of ['plugins/tke-eni-lib', 'reference']) mkdirSync(dir.join(name), { recursive: true });
  const script = (path: string, text: string) =>
    writeFileSync(dir.join(path), `#!/bin/sh\n# ${text}\n`, { mode: 0o755 });
  script('plugins/tke-route-eni', 'complete');
  script('plugins/tke-eni-launcher', 'launcher');
  writeFileSync(dir.join('plugins/tke-eni-lib/libatomic.so.1'), 'library');
  for (const name of ['portmap', 'bridge', 'host-local']) script(`reference/${name}`, `reference ${name}`);
  const time = { nowMs: 0 };
  const open = (release = '0.2.0') =>
    openInstallation(
      {
        ...{ pluginDir: dir.join('plugins'), referencePluginDir: dir.join('reference'), hostRoot: '/' },
        ...{ cniLauncher: 'auto', cniBinDir: dir.join('bin'), cniConfDir: dir.join('conf') },
        ...{ socket: '/run/a.sock', mtu: 0, portMapping: false, bandwidth: false, chainedPlugins: [] },
      },
      {
        ...{
          log: { ...silentLogger, warn: (message) => void warnings.push(message) },
          release,
          clock: { ...systemClock, monotonicMs: () => time.nowMs },
        },
        listener: {
          ...{ loaderProblemChanged: () => {}, filesProblemChanged: () => {}, missingPluginsChanged: () => {} },
          ...{ contested: () => {}, ...listener },
        },
        ...(first.otherAgent && { otherAgent: first.otherAgent }),
      },
    );
  if (first.before !== undefined) {
    mkdirSync(dir.join('bin'));
    first.before(dir.join('bin'));
  }
  const installation = open();
  /** Ten minutes later, so that nothing counts as a fight. */
  const look = async (laterMs = 600_000, one = installation): Promise<void> => {
    time.nowMs += laterMs;
    await one.ensureExecutables();
    await one.ensureConflist(true);
  };
  await look();
  const bin = (name: string): string => dir.join('bin', name);
  return { dir, bin, conflist: dir.join('conf', CONFLIST_FILE), look, open };
}

/** All files below a folder, with mode and content, and which are one. */
function snapshot(path: string): readonly string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, path: `${entry.parentPath}/${entry.name}` }))
    .filter(({ path: one }) => !one.endsWith(RECORD_FILE))
    .map(({ entry, path: one }) => {
      const { mode, nlink } = lstatSync(one);
      return `${one} ${(mode & 0o777).toString(8)} ${entry.isFile() ? `${nlink} ${readFileSync(one, 'utf8')}` : ''}`;
    })
    .toSorted();
}

const OURS = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni', 'tke-eni-cni', 'tke-eni-lib/libatomic.so.1'];
const HARM: readonly (readonly [string, (path: string) => void])[] = [
  ['removed', (path) => rmSync(path)],
  [
    'replaced by another file',
    (path) => {
      rmSync(path);
      writeFileSync(path, 'theirs', { mode: 0o755 });
    },
  ],
  ['written over in place', (path) => writeFileSync(path, 'theirs')],
  [
    'changed in place, with its size and time',
    (path) => {
      const { size, mtime, atime } = statSync(path);
      writeFileSync(path, 'x'.repeat(size));
      utimesSync(path, atime, mtime);
    },
  ],
  ['made longer', (path) => appendFileSync(path, 'more')],
  ['cut off', (path) => truncateSync(path, 4)],
  ['emptied', (path) => truncateSync(path, 0)],
  ['not executable or readable', (path) => chmodSync(path, 0)],
  ['writable for all', (path) => chmodSync(path, 0o777)],
  [
    'a link to another file',
    (path) => {
      rmSync(path);
      symlinkSync('/bin/true', path);
    },
  ],
  [
    'a link that leads nowhere',
    (path) => {
      rmSync(path);
      symlinkSync('/none', path);
    },
  ],
  [
    'a folder',
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
  [
    'a FIFO',
    (path) => {
      rmSync(path);
      execFileSync('mkfifo', [path]);
    },
  ],
];

for (const [what, harm] of HARM) {
  test(`openInstallation: puts each file of ours back that is ${what}`, async (t) => {
    const node = await openNode(t);
    const before = snapshot(node.dir.path);
    for (const path of [...OURS.map(node.bin), node.conflist]) harm(path);
    await node.look();
    for (const name of readdirSync(node.dir.path, { recursive: true, encoding: 'utf8' }))
      if (name.includes('.aside-')) rmSync(node.dir.join(name), { recursive: true });
    t.deepEqual(snapshot(node.dir.path), before);
  });
}

test('openInstallation: puts folders back, with all that was in them', async (t) => {
  const warnings: string[] = [];
  const node = await openNode(t, {}, warnings);
  t.deepEqual(warnings, [], 'a folder that was not there is recorded too');
  const before = snapshot(node.dir.path);
  for (const name of ['bin', 'conf', 'bin/tke-eni-lib']) {
    rmSync(node.dir.join(name), { recursive: true });
    await node.look();
    t.deepEqual(snapshot(node.dir.path), before, name);
  }
  t.true(readdirSync(node.dir.join('bin')).includes(RECORD_FILE));
});

test('openInstallation: puts reference plugins back that are gone, cut off, not executable or a folder, and leaves those of others', async (t) => {
  const { bin, look } = await openNode(t);
  const path = bin('portmap');
  const ours = readFileSync(path, 'utf8');
  for (const harm of [
    () => rmSync(path),
    () => truncateSync(path, 5),
    () => truncateSync(path, 0),
    () => chmodSync(path, 0o644),
    () => {
      rmSync(path);
      mkdirSync(path);
    },
  ]) {
    harm();
    await look();
    t.is(readFileSync(path, 'utf8'), ours);
    t.is(statSync(path).mode & 0o777, 0o755);
  }
  for (const replace of [
    () => writeFileSync(path, '#!/bin/sh\n# theirs, by cp'),
    () => {
      rmSync(path);
      writeFileSync(path, 'theirs, by install', { mode: 0o555 });
    },
    () => {
      rmSync(path);
      symlinkSync('/usr/lib/cni/portmap', path);
    },
  ]) {
    replace();
    const theirs = lstatSync(path);
    await look();
    t.deepEqual([lstatSync(path).ino, lstatSync(path).mtimeMs], [theirs.ino, theirs.mtimeMs]);
  }
});

test('openInstallation: says what is not as installed until it is put back, and writes nothing while nothing changes', async (t) => {
  const told: (string | undefined)[] = [];
  const { dir, bin, conflist, look } = await openNode(t, { filesProblemChanged: (why) => void told.push(why) });
  t.deepEqual(told, []);
  const { ctimeMs } = statSync(bin('tke-eni-cni'));
  for (let turn = 0; turn < 3; turn++) await look();
  t.is(statSync(bin('tke-eni-cni')).ctimeMs, ctimeMs);
  rmSync(conflist);
  await look();
  rmSync(bin('tke-route-eni'));
  // A folder is mounted over the place, or nothing may be written: here a file is where the folder was.
  rmSync(dir.join('conf'), { recursive: true });
  writeFileSync(dir.join('conf'), '');
  await look();
  t.regex(told[0] ?? '', /10-tke-eni\.conflist is not as installed: it is not there/);
  t.is(told[1], undefined);
  t.regex(told[2] ?? '', /tke-route-eni is not as installed: it is not there/);
  t.is(told[3], undefined);
  t.regex(told.at(-1) ?? '', /10-tke-eni\.conflist is not as installed: /);
  rmSync(dir.join('conf'));
  await look();
  t.is(told.at(-1), undefined);
});

test('openInstallation: answers a program that keeps replacing a file later each time, says so, and goes on', async (t) => {
  const told: (readonly string[])[] = [];
  const { bin, look } = await openNode(t, { contested: (paths) => void told.push(paths) });
  const path = bin('tke-route-eni');
  let returns = 0;
  for (let second = 0; second < 120; second++) {
    if (readFileSync(path, 'utf8') !== 'theirs') {
      returns++;
      rmSync(path);
      writeFileSync(path, 'theirs');
    }
    await look(1_000);
  }
  t.true(returns > 6 && returns < 15, `${returns} times`);
  t.deepEqual(told, [[path]]);
  await look();
  t.not(readFileSync(path, 'utf8'), 'theirs');
});

test('openInstallation: leaves what an agent of a newer release, or of another build, recorded, and replaces that of an older one', async (t) => {
  const { dir, bin, look, open } = await openNode(t);
  const install = (release: string | undefined, text: string) => {
    for (const name of ['tke-route-eni', 'tke-eni-cni']) {
      rmSync(bin(name));
      writeFileSync(bin(name), text, { mode: 0o755 });
    }
    recordInstalled(dir.join('bin'), ['tke-route-eni', 'tke-eni-cni'], release);
  };
  for (const release of ['0.3.0+new', '0.2.0']) {
    install(release, release);
    await look();
    t.deepEqual(
      ['tke-route-eni', 'tke-eni-cni'].map((name) => readFileSync(bin(name), 'utf8')),
      [release, release],
    );
  }
  for (const release of ['0.1.9', undefined]) {
    install(release, 'older');
    await look();
    t.not(readFileSync(bin('tke-route-eni'), 'utf8'), 'older');
  }
  // One that starts is the one that is to serve: a rollback.
  install('0.3.0', 'newer');
  await look(600_000, open());
  t.not(readFileSync(bin('tke-route-eni'), 'utf8'), 'newer');
});

test('openInstallation: leaves the executables of the closed product, which are Go programs of our names, and is not ready', async (t) => {
  const told: (string | undefined)[] = [];
  const { bin, look } = await openNode(t, { filesProblemChanged: (why) => void told.push(why) });
  const program = productProgram;
  rmSync(bin('tke-route-eni'));
  writeFileSync(bin('tke-route-eni'), program('tke-route-eni'), { mode: 0o755 });
  await look();
  t.true(readFileSync(bin('tke-route-eni')).equals(program('tke-route-eni')));
  t.regex(told.at(-1) ?? '', /tke-route-eni is not as installed: it is of another product/);
  // A reference plugin under our name is nobody's.
  writeFileSync(bin('tke-route-eni'), program('portmap'));
  await look();
  t.is(told.at(-1), undefined);
});

/** An executable of the closed product: a Go program that names itself. */
const productProgram = (name: string): Buffer =>
  Buffer.from(`\x7fELF${' '.repeat(1 << 20)}\xff Go buildinf:\x08\x02 cni/${name}`, 'latin1');

test('openInstallation: an executable of the closed product that is there at the start is kept under another name', async (t) => {
  const theirs = productProgram('tke-route-eni');
  const { bin, look, open } = await openNode(t, {}, [], {
    before: (folder) => {
      writeFileSync(`${folder}/tke-route-eni`, theirs, { mode: 0o755 });
      writeFileSync(`${folder}/tke-eni-ipamc`, 'of nobody', { mode: 0o755 });
    },
  });
  t.false(readFileSync(bin('tke-route-eni')).equals(theirs));
  t.true(readFileSync(bin('.tke-route-eni.replaced')).equals(theirs));
  t.throws(() => statSync(bin('.tke-eni-ipamc.replaced')), { code: 'ENOENT' });
  writeFileSync(`${bin('tke-route-eni')}.new`, productProgram('tke-route-eni of a later release'));
  renameSync(`${bin('tke-route-eni')}.new`, bin('tke-route-eni'));
  await look(600_000, open());
  t.true(readFileSync(bin('.tke-route-eni.replaced')).equals(theirs), 'the first one stays');
});

test('openInstallation: installs no conflist while another agent is there, and installs it when that went', async (t) => {
  const told: (string | undefined)[] = [];
  let other: string | undefined = 'the product answers on 127.0.0.1:61677';
  const { conflist, look } = await openNode(t, { filesProblemChanged: (why) => void told.push(why) }, [], {
    otherAgent: async () => other,
  });
  t.throws(() => statSync(conflist), { code: 'ENOENT' });
  t.deepEqual(told, [other]);
  await look();
  t.throws(() => statSync(conflist), { code: 'ENOENT' });
  other = undefined;
  await look();
  t.true(statSync(conflist).isFile());
  t.is(told.at(-1), undefined);
  // Later only at a start: a conflist that is there has Pods.
  other = 'it is back';
  await look();
  t.is(told.at(-1), undefined);
});

test('openInstallation: leaves a conflist away that was removed by command, until an agent starts', async (t) => {
  const { dir, conflist, look, open } = await openNode(t);
  withdrawConflist(dir.join('conf'));
  await look();
  t.throws(() => statSync(conflist), { code: 'ENOENT' });
  await look(600_000, open());
  t.deepEqual(readdirSync(dir.join('conf')), [CONFLIST_FILE]);
});
