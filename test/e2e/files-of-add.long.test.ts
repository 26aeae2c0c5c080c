import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import test from 'ava';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openScenes } from './support/scene.ts';

/**
 * Who follows an ADD through the agent reads at most so many files: 126 on 6.18, of which 36 of netlink. A change that needs more
 * raises it, and says why: six since 120, which flush the connections of an address before it is given again, look for a link of
 * another program at the Pod's place, and keep the intent of an ADD.
 */
const MAX_FILES = 130;
/** The agent does other work too, by its timers and after a DEL: a whole repair is 15 files. One run without any is enough. */
const MAX_RUNS = 20;
const ROOT = join(import.meta.dirname, '..', '..');

const dir = createTempDir('files-of-add');
const counted = join(dir.path, 'files');
writeAgent();

/** An agent of the sources that counts which files it runs code of. */
function writeAgent(): void {
  const path = join(dir.path, 'tke-eni-agent');
  mkdirSync(dir.path, { recursive: true });
  const counter = join(ROOT, 'tools/files-of-add/count-calls.ts');
  const command = [process.execPath, `--import=${counter}`, join(ROOT, 'agent/main.ts')].join(' ');
  writeFileSync(path, `#!/bin/sh\nFILES_OF_ADD=${counted} exec ${command} "$@"\n`);
  chmodSync(path, 0o755);
  process.env['TKE_ENI_AGENT_BIN'] = dir.path;
}

test.after.always(() => dir.close());

const scenes = openScenes(test, [{ ruleMode: 'compact' }]);

/** Returns the files of the product that the agent ran code of since it was asked last. */
async function countedFiles(agent: { kill(signal: NodeJS.Signals): void }): Promise<readonly string[]> {
  rmSync(counted, { force: true });
  agent.kill('SIGUSR2');
  await waitUntil(() => existsSync(counted), { what: 'the list of files' });
  const paths = readFileSync(counted, 'utf8').trimEnd().split('\n');
  return paths
    .map((path) => relative(ROOT, path))
    .filter((path) => !path.startsWith('tools/'))
    .sort();
}

test('ADD runs code of few files', async (t) => {
  const { node } = scenes.get('compact');
  // The first ADD loads what no later one does.
  await node.delete(await node.addPod());
  const runs: (readonly string[])[] = [];
  for (let run = 0; run < MAX_RUNS && !runs.some(({ length }) => length <= MAX_FILES); run += 1) {
    await countedFiles(node.agent);
    const pod = await node.addPod();
    runs.push(await countedFiles(node.agent));
    await node.delete(pod);
  }
  const files = runs.toSorted((one, other) => one.length - other.length)[0] ?? [];
  const folders = Map.groupBy(files, (path) =>
    path
      .split('/')
      .slice(0, path.startsWith('agent/') ? 2 : 1)
      .join('/'),
  );
  for (const [folder, its] of folders)
    t.log(`${String(its.length).padStart(3)} ${folder}: ${its.map((path) => path.slice(folder.length + 1)).join(' ')}`);
  t.log(`figure: an ADD runs code of ${files.length} files`);
  t.true(files.includes('agent/attachment/attach.ts'), files.join('\n'));
  t.true(files.length <= MAX_FILES, `${files.length} files`);
});
