import { recordDocuments } from './agent-documents.ts';
import { openAgentStage } from './agent-stage.ts';
import { recordClusterDocuments } from './cluster-documents.ts';
import type { RelayedCall } from './ops-relay.ts';
import { recordCniCalls } from './record-cni.ts';
import { recordExits } from './record-exits.ts';
import { recordLeftFiles, recordSpooledDel } from './record-files.ts';
import { recordOps } from './record-ops.ts';

/** Runs executables on a stage and hands over what is recorded of them, by the names of the files. */
export async function recordExecutables(write: (name: string, value: unknown) => void): Promise<void> {
  const stage = await openAgentStage();
  try {
    const calls = await recordCniCalls(stage);
    for (const { name, ...call } of calls) write(`wire/cni-calls/${name}`, call);
    const cluster = await recordClusterDocuments(stage);
    const { documents, ops } = await recordDocuments(stage, recordOps);
    for (const [command, { calls: relayed, ...rest }] of Object.entries(ops)) {
      write(`wire/ops-calls/${command}`, { ...rest, calls: relayed.map(asText) });
    }
    write('json/cluster', cluster);
    write('json/node', documents);
    const { journal, ...files } = recordLeftFiles(stage);
    write('journal/agent', journal);
    for (const [name, file] of Object.entries(files)) write(`files/left/${name}`, file);
  } finally {
    await stage.close();
  }
  write('files/spooled', await recordSpooledDel());
  write('names/exit-codes', await recordExits());
}

function asText({ path, request, replies }: RelayedCall): object {
  return { path, request: request.toString('hex'), replies: replies.map((reply) => reply.toString('hex')) };
}
