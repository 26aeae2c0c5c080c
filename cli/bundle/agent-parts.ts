import { openOpsClient } from '../agent/ops-client.ts';
import type { CommandContext } from '../command.ts';
import { type BundlePart, valuePart } from './bundle-part.ts';

/** What the running agent tells from memory: pool, summary, and its flight recorder. */
export function agentParts({ global }: Pick<CommandContext, 'global'>): readonly BundlePart[] {
  const ask = (path: string, question: 'pool' | 'summary' | 'recorder'): BundlePart => ({
    path,
    collect: async () => {
      using client = await openOpsClient(global.socket);
      return valuePart(question === 'recorder' ? await client.recorder('') : await client[question]());
    },
  });
  return [ask('agent/pool.json', 'pool'), ask('agent/summary.json', 'summary'), ask('agent/recorder.json', 'recorder')];
}
