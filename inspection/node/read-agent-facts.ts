import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { readBootId } from '../../agent/journal/boot-id.ts';
import { readNodeRecord } from '../../agent/journal/node-file.ts';
import { NODE_RECORD_FILE, type NodeRecord } from '../../agent/journal/node-record.ts';
import { readJournal } from '../../agent/journal/read-journal.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { known, unknown } from './known.ts';
import type { AgentFacts, Known } from './node-facts.ts';

/** File name of the agent's journal in its state folder. */
const JOURNAL_FILE = 'journal.db';

/**
 * Reads the agent's state folder, whether the agent runs or not. Never throws: what is missing is returned as unknown.
 */
export function readAgentFacts(stateDir: string): Known<AgentFacts> {
  const path = join(stateDir, JOURNAL_FILE);
  const missing = whyUnreadable(path);
  if (missing !== undefined) return missing;
  try {
    const { bootId, needsAdoption, ...journal } = readJournal(path);
    if (bootId !== readBootId()) {
      return unknown(`${path} is of an earlier boot`, 'start the agent: it begins a new one');
    }
    return known({ journal, needsAdoption, node: readNode(join(stateDir, NODE_RECORD_FILE), bootId) });
  } catch (error) {
    return unknown(messageOf(error), 'look at the agent’s log: it rebuilds a damaged journal when it starts');
  }
}

function readNode(path: string, bootId: string): Known<NodeRecord> {
  const missing = whyUnreadable(path);
  if (missing !== undefined) return missing;
  try {
    const record = readNodeRecord(path);
    return record.bootId === bootId ? known(record) : unknown(`${path} is of an earlier boot`, 'start the agent');
  } catch (error) {
    return unknown(`${path}: ${messageOf(error)}`, 'restart the agent: it writes the file again');
  }
}

function whyUnreadable(path: string): Known<never> | undefined {
  try {
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') {
      return unknown(`there is no ${path}`, 'start the agent on this node, or name its folder with --state-dir');
    }
    if (code === 'EACCES' || code === 'EPERM') return unknown(`${path} is readable by root only`, 'run as root');
    return unknown(`${path}: ${messageOf(error)}`, 'look at the file system that holds it');
  }
}
