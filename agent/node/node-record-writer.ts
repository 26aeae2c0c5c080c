import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { EniNetwork, NodeNetwork } from '../../dataplane/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { writeNodeRecord } from '../journal/node-file.ts';
import { NODE_RECORD_FILE, type NodeRecord } from '../journal/node-record.ts';

/** Receives the plan of each pass. Never throws. */
export type PlannedListener = (node: NodeNetwork, enis: readonly EniNetwork[]) => void;

/** Dependencies of the writer besides the plan. */
type NodeRecordWriterDeps = Pick<NodeRecord, 'bootId' | 'agentRelease' | 'nodeName' | 'role'> & {
  /** Folder of the journal; it exists before the first pass. */
  readonly stateDir: string;
  readonly log: Logger;
};

/**
 * Creates the writer of the node's record: it writes when the plan differs from the last one written, or the file is
 * missing. A failure is logged once; the next pass tries again.
 */
export function createNodeRecordWriter({ stateDir, log, ...identity }: NodeRecordWriterDeps): PlannedListener {
  const path = join(stateDir, NODE_RECORD_FILE);
  let written: string | undefined;
  let isFailureLogged = false;
  return (node, enis) => {
    const record: NodeRecord = { ...identity, node, enis };
    const now = JSON.stringify(record);
    if (now === written && statSync(path, { throwIfNoEntry: false })?.isFile() === true) return;
    try {
      writeNodeRecord(stateDir, record);
      written = now;
      isFailureLogged = false;
    } catch (error) {
      if (!isFailureLogged) log.warn('the node record was not written, tools read an older one', { path, error });
      isFailureLogged = true;
    }
  };
}
