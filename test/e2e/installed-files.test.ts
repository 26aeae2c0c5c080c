import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { CONFLIST_FILE } from '../../agent/install/conflist.ts';
import { openAgentCaller } from '../support/agent-call.ts';
import { pluginDir } from '../support/executables.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial } from './support/trial.ts';

/** A node on which an agent has installed itself. */
async function openInstalled(t: ExecutionContext): Promise<{ trial: Trial; files: () => readonly string[] }> {
  t.timeout(240_000);
  const flags = { 'plugin-dir': pluginDir(), 'reference-plugin-dir': '', 'host-root': '/' };
  const trial = await openTrial({ ruleMode: 'compact', flags });
  t.teardown(() => trial.close());
  const { cniBinDir, cniConfDir, socketPath } = trial.agent;
  await waitUntil(() => lstatSync(join(cniConfDir, CONFLIST_FILE), { throwIfNoEntry: false }), {
    what: 'the conflist',
  });
  const describe = (path: string): readonly string[] => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return [];
    if (stat.isDirectory()) return readdirSync(path).flatMap((name) => describe(join(path, name)));
    return [`${path} ${stat.mode.toString(8)} ${stat.isSocket() ? '' : `${stat.nlink} ${stat.size}`}`];
  };
  const files = (): readonly string[] => [cniBinDir, cniConfDir, socketPath].flatMap(describe).toSorted();
  let last = '';
  const isAtRest = (): boolean => {
    const before = last;
    last = files().join('\n');
    return last === before;
  };
  await waitUntil(isAtRest, { what: 'files that stay as they are', everyMs: 500 });
  return { trial, files };
}

test('agent: puts back executables, record, conflist and socket that others remove, replace, cut off or close, while it runs', async (t) => {
  const { trial, files } = await openInstalled(t);
  const { cniBinDir, cniConfDir, socketPath } = trial.agent;
  const before = files();
  const conflist = join(cniConfDir, CONFLIST_FILE);
  const text = readFileSync(conflist, 'utf8');
  const main = join(cniBinDir, 'tke-route-eni');
  const harms: readonly (readonly [string, () => void])[] = [
    [
      'both folders emptied, as by an upgrade of a package',
      () => {
        for (const folder of [cniBinDir, cniConfDir]) {
          rmSync(folder, { recursive: true });
          mkdirSync(folder);
        }
      },
    ],
    [
      'another program under our name',
      () => {
        rmSync(main);
        writeFileSync(main, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
      },
    ],
    [
      'a disk that was full, a mode, a folder',
      () => {
        truncateSync(join(cniBinDir, 'tke-eni-ipamc'), 100);
        chmodSync(main, 0o644);
        rmSync(conflist);
        mkdirSync(conflist);
      },
    ],
    [
      'the socket moved away, and another configuration',
      () => {
        renameSync(socketPath, `${socketPath}.theirs`);
        writeFileSync(conflist, '{}');
      },
    ],
  ];
  for (const [what, harm] of harms) {
    harm();
    const isBack = (): boolean =>
      JSON.stringify(files().filter((line) => !line.includes('.aside-'))) === JSON.stringify(before);
    await waitUntil(isBack, { what, timeoutMs: 30_000, explain: () => `${files().join('\n')}\n${trial.lastWords()}` });
    t.is(readFileSync(conflist, 'utf8'), text, what);
    const pod = await trial.addPod();
    await trial.delete(pod);
    await trial.agent.awaitUntil('ready');
  }
});

test('agent: says by STATUS what cannot be put back, until it is', async (t) => {
  const { trial } = await openInstalled(t);
  const { cniConfDir, socketPath } = trial.agent;
  rmSync(cniConfDir, { recursive: true });
  writeFileSync(cniConfDir, 'in the way');
  const caller = openAgentCaller(socketPath);
  t.teardown(() => caller.close());
  let last = '';
  const says = async (pattern: RegExp): Promise<boolean> => {
    const { error } = await caller.call('status', { plugin: 1 }, 2_000);
    last = `${error?.code ?? 'ready'} ${error?.msg ?? ''}`;
    return pattern.test(last);
  };
  const options = { timeoutMs: 30_000, explain: () => `${last}\n${trial.lastWords()}` };
  await waitUntil(() => says(/^50 .*10-tke-eni\.conflist is not as installed: /), { what: 'a reason', ...options });
  rmSync(cniConfDir);
  await waitUntil(() => says(/^ready/), { what: 'readiness', ...options });
  t.deepEqual(readdirSync(cniConfDir), [CONFLIST_FILE]);
});
