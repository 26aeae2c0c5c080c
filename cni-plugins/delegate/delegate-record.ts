import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { isRecord } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { ensureFolder } from '../../runtime/folder.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';
import { CniError } from '../skel/error.ts';
import { type DelegateConf, delegateConfOf } from './delegate-conf.ts';
import { RECORD_SUFFIX, type RecordedInterface, recordPath } from './record-path.ts';

/** An interface of a sandbox that other plugins made, or may have begun. */
export type DelegateRecord = RecordedInterface & {
  /** With which its ADD was made, whatever became of the file. */
  readonly conf: DelegateConf;
};

/**
 * Records a delegation, before the first plugin runs: whatever happens to node, agent, annotation or file afterwards, DEL
 * finds the plugins again. Durable when it returns.
 * @throws the file system's own error
 */
export function writeDelegateRecord(folder: string, record: DelegateRecord): void {
  ensureFolder(folder, 0o700);
  const { containerId, ifName, conf } = record;
  writeFileAtomically(recordPath(folder, record), `${JSON.stringify({ containerId, ifName, conf })}\n`, 0o600);
}

/** Reads the record of an interface; undefined when it is none of other plugins. @throws CniError code 5 with its path */
export function readDelegateRecord(folder: string, target: RecordedInterface): DelegateRecord | undefined {
  const path = recordPath(folder, target);
  return existsSync(path) ? decodeRecord(path) : undefined;
}

/** Lists all records. @throws CniError code 5 for one that cannot be read */
export function listDelegateRecords(folder: string): readonly DelegateRecord[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(RECORD_SUFFIX))
    .toSorted()
    .map((name) => decodeRecord(join(folder, name)));
}

/** Forgets a delegation. Idempotent. */
export function removeDelegateRecord(folder: string, target: RecordedInterface): void {
  rmSync(recordPath(folder, target), { force: true });
}

const MAX_RECORD_BYTES = 512 * 1024;

function decodeRecord(path: string): DelegateRecord {
  try {
    const value: unknown = JSON.parse(readRegularText(path, MAX_RECORD_BYTES));
    if (!isRecord(value)) throw new Error('expected a JSON object');
    const { containerId, ifName, conf } = value;
    if (typeof containerId !== 'string' || typeof ifName !== 'string')
      throw new Error('expected containerId and ifName');
    return { containerId, ifName, conf: delegateConfOf(conf) };
  } catch (cause) {
    const why = messageOf(cause);
    const next = 'what the plugin of this Pod made has to be removed by hand, and then this file';
    throw new CniError(CNI_CODE.io, `${path}: ${why}`, next, { cause });
  }
}
