import { join } from 'node:path';
import { identifyExplainPlace } from '../../../agent/api/explain-place.ts';
import { OPS_METHODS, type OpsReplyOf } from '../../../agent/api/ops-service.ts';
import type { ExplainQuestion } from '../../../inspection/explain/build-explanation.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { callOnce } from '../../agent/call-once.ts';
import type { GlobalArgs } from '../../command/command.ts';

type Place = Pick<GlobalArgs, 'socket' | 'stateDir' | 'agentTimeoutMs' | 'netns' | 'hostRoot'>;

/**
 * Lets a running agent explain: it has the code loaded that this process would have to load. Returns undefined where this
 * process has to read by itself: no agent answers in time, an older one without the call, one that looks at another node,
 * or one that declines.
 */
export async function askAgent(
  { socket, stateDir, agentTimeoutMs, netns, hostRoot }: Place,
  { subject, to = '', from = '' }: ExplainQuestion,
): Promise<{ readonly explanation: Explanation } | undefined> {
  // Which namespace a name stands for is found out by code that this process does not need otherwise.
  if (netns !== undefined) return undefined;
  const place = identifyExplainPlace({ journal: join(stateDir, 'journal.db'), hostRoot });
  if (place === undefined) return undefined;
  try {
    const request = { subject, to, from, place };
    const reply = await callOnce<OpsReplyOf<'explain'>>(socket, OPS_METHODS.explain, request, agentTimeoutMs);
    if (reply === undefined || reply.explanation === '') return undefined;
    // The agent has made it by the very function that this process would call.
    return { explanation: JSON.parse(reply.explanation) as Explanation };
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
