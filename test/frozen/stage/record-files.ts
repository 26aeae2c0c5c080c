import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../sim/support/netns.ts';
import { callExecutable } from '../../cni-plugins/support/call-executable.ts';
import { executablePath } from '../../support/executables.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { asFile, type RecordedFile } from '../record/files.ts';
import { dumpJournal, type JournalDump } from '../record/journal.ts';
import { type AgentStage, fileOf } from './agent-stage.ts';
import { confOf, envOf } from './cni-steps.ts';

/** What a stage's agent left on the node. */
type LeftFiles = {
  /** Names of all files below the folders that the agent was given. */
  readonly names: Readonly<Record<string, readonly string[]>>;
  readonly node: RecordedFile;
  readonly found: RecordedFile;
  readonly installed: RecordedFile;
  readonly conflist: RecordedFile;
  readonly journal: JournalDump;
};

const STATE = 'state';
const CONF = 'cni-conf';
const BIN = 'cni-bin';
const JOURNAL = 'journal.db';

/** Reads what the agent of a stage left; it must not run any more. */
export function recordLeftFiles(stage: AgentStage): LeftFiles {
  const names = [STATE, CONF, BIN].map((folder) => [
    folder,
    readdirSync(fileOf(stage, folder), { recursive: true }).map(String).sort(),
  ]);
  return {
    names: Object.fromEntries(names),
    node: readFile(fileOf(stage, STATE), 'node.json'),
    found: readFile(fileOf(stage, STATE), 'found.json'),
    installed: readFile(fileOf(stage, BIN), '.tke-eni-installed.json'),
    conflist: readFile(fileOf(stage, CONF), '10-tke-eni.conflist'),
    journal: readLeftJournal(fileOf(stage, STATE, JOURNAL)),
  };
}

/** A copy is opened: what is read is what was left. */
function readLeftJournal(path: string): JournalDump {
  const dir = createTempDir('frozen');
  try {
    copyFileSync(path, dir.join(JOURNAL));
    return dumpJournal(dir.join(JOURNAL));
  } finally {
    dir.close();
  }
}

/** Has an executable leave a DEL for an agent that is not there, and reads it. */
export async function recordSpooledDel(): Promise<RecordedFile> {
  const dir = createTempDir('frozen');
  try {
    const step = { name: 'del', plugin: 'tke-route-eni', command: 'DEL', pod: 'cart-0' } as const;
    const conf = confOf(step, `unix:${dir.join('agent.sock')}`, undefined);
    await callExecutable([executablePath(step.plugin)], envOf(step), JSON.stringify(conf));
    const [name = ''] = readdirSync(dir.join('deletions'));
    return readFile(dir.join('deletions'), name);
  } finally {
    dir.close();
  }
}

function readFile(folder: string, name: string): RecordedFile {
  const content: JsonObject = JSON.parse(readFileSync(join(folder, name), 'utf8'));
  return asFile({ name, content });
}
