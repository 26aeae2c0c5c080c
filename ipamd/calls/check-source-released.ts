import { isKubeError } from '../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { decodeNec } from '../cache/decode-nec.ts';
import type { IntentFailure } from '../decide/decision.ts';
import type { NodeDeps } from './node-deps.ts';
import { type IntentCase, NOT_RELEASED_CODE } from './note-refusal.ts';

/**
 * Reads the object of the source node of a move once more from the API server, because a watch may be late. Returns why
 * the address must not be moved; undefined when it may be. With the move recorded no other node starts a call for the
 * address, so the result stays true until the move is over.
 */
export async function checkSourceReleased(
  { kube }: Pick<NodeDeps, 'kube'>,
  { intent, sourceNode }: IntentCase,
  signal: AbortSignal,
): Promise<IntentFailure | undefined> {
  if (intent.action !== 'MigratePrivateIpAddress') return undefined;
  const code = NOT_RELEASED_CODE;
  if (sourceNode === undefined) return { code, message: 'it is not known which node the address is moved from' };
  try {
    const object = await kube.get(NODE_ENI_CONFIGS, { name: sourceNode }, signal);
    if (object === undefined) return { code, message: `NodeENIConfig ${sourceNode} is gone` };
    const eni = decodeNec(object).decoded?.status?.eniInfos?.find(({ eniID }) => eniID === intent.eniID);
    const address = eni?.addresses?.find(({ ip }) => intent.ips?.includes(ip) === true);
    if (address?.state === 'Releasing' && address.claim !== undefined && address.claim.uid === undefined)
      return undefined;
    return { code, message: `node ${sourceNode} has not released ${intent.ips?.join(', ') ?? 'it'}` };
  } catch (error) {
    signal.throwIfAborted();
    if (!isKubeError(error)) throw error;
    return { code, message: `NodeENIConfig ${sourceNode} cannot be read: ${error.message}` };
  }
}
