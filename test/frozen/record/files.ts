import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  type InstalledFile,
  readInstallRecord,
  recordInstalled,
  recordIntent,
} from '../../../agent/install/install-record.ts';
import { readNodeRecord, writeNodeRecord } from '../../../agent/journal/node-file.ts';
import { openFoundState, readFoundState } from '../../../agent/node/found-state.ts';
import type { Operation } from '../../../dataplane/operation.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';

/** A file that one agent writes and another reads. */
export type RecordedFile = { readonly name: string; readonly content: JsonObject };

/** Takes a recorded value for what it is. @throws Error when it is no such file */
export function asFile({ name, content }: JsonObject): RecordedFile {
  if (typeof name !== 'string' || !isObject(content)) throw new Error('no recorded file');
  return { name, content };
}

/** Has the product read node.json and write it again. */
export function rewriteNodeFile({ name, content }: RecordedFile): RecordedFile {
  return inFolder((dir) => {
    writeFileSync(dir.join(name), JSON.stringify(content));
    const node = readNodeRecord(dir.join(name));
    const written = dir.join('written');
    writeNodeRecord(makeFolder(written), node);
    return readFile(written, name);
  });
}

/** Has the product read found.json, and write it again from the changes that it tells of. */
export function rewriteFoundFile({ name, content }: RecordedFile): RecordedFile {
  return inFolder((dir) => {
    writeFileSync(dir.join(name), JSON.stringify(content));
    const { bootId, sysctls, links, addresses = [] } = readFoundState(dir.join(name), String(content['bootId']));
    const written = makeFolder(dir.join('written'));
    const keeper = openFoundState(`${written}/${name}`, bootId, silentLogger);
    const changes: readonly Operation[] = [
      ...sysctls.map(({ path, found, set }) => ({
        kind: 'set-sysctl' as const,
        key: { path },
        before: found,
        value: set,
      })),
      ...links.map(({ found, set, ...link }) => ({ kind: 'set-link' as const, ...link, before: found, change: set })),
      ...addresses.map((address) => ({ kind: 'add-address' as const, address })),
    ];
    for (const change of changes) keeper.record(change);
    return readFile(written, name);
  });
}

/** Has the product write a record of what it installed, and puts what tells the files apart in place of this machine's. */
export function rewriteInstallRecord({ name, content }: RecordedFile): RecordedFile {
  return inFolder((dir) => {
    writeFileSync(dir.join(name), JSON.stringify(content));
    const { files, intended, release } = readInstallRecord(dir.path);
    const written = makeFolder(dir.join('written'));
    for (const file of files) {
      mkdirSync(dirname(`${written}/${file.name}`), { recursive: true });
      writeFileSync(`${written}/${file.name}`, '');
    }
    recordInstalled(
      written,
      files.map((file) => file.name),
      release,
    );
    recordIntent(written, intended);
    const again = readFile(written, name).content;
    const known = new Map(files.map((file) => [file.name, file]));
    const items = Array.isArray(again['files']) ? again['files'].filter(isObject) : [];
    return { name, content: { ...again, files: items.map((item) => asOn(item, known.get(String(item['name'])))) } };
  });
}

/** Takes from `there` the values of the names that were written here; a name that it lacks is left out. */
function asOn(item: JsonObject, there: InstalledFile | undefined): JsonObject {
  const values = new Map<string, unknown>(Object.entries(there ?? {}));
  return Object.fromEntries(Object.keys(item).map((key) => [key, values.get(key)]));
}

function inFolder<T>(work: (dir: TempDir) => T): T {
  const dir = createTempDir('frozen');
  try {
    return work(dir);
  } finally {
    dir.close();
  }
}

function makeFolder(path: string): string {
  mkdirSync(path);
  return path;
}

function readFile(folder: string, name: string): RecordedFile {
  const content: unknown = JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'));
  if (!isObject(content)) throw new Error(`${name}: no object`);
  return { name, content };
}
