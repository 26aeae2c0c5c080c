import { ENI_IP_TAINT } from '../../crd/names.ts';
import type { NodeTaint } from '../cache/node-entry.ts';

/**
 * Decides the taints of a VPC-CNI node: without ipamd's taint once the agent serves addresses, with it before, if
 * `putsOn` is true. For exclusive ENIs `ours` is their taint. Undefined: the taints are up to date. Other taints stay
 * unchanged, in their order.
 */
export function decideTaints(
  taints: readonly NodeTaint[],
  isServing: boolean,
  putsOn: boolean,
  ours: NodeTaint = ENI_IP_TAINT,
): readonly NodeTaint[] | undefined {
  // With any value: people also write it without one.
  const isOurs = ({ key, effect }: NodeTaint) => key === ours.key && effect === ours.effect;
  const hasOurs = taints.some(isOurs);
  if (isServing) return hasOurs ? taints.filter((taint) => !isOurs(taint)) : undefined;
  return putsOn && !hasOurs ? [...taints, ours] : undefined;
}

/** One step of a JSON patch. @see RFC 6902 */
type JsonPatchStep = { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown };

/**
 * Builds the patch from the taints that were read to the required ones. It fails when another client changed a taint in
 * between; heartbeats do not make it fail. A strategic patch merges taints by key alone and would remove a taint with
 * the same key and another effect.
 */
export function taintPatch(
  read: { readonly taints: readonly NodeTaint[]; readonly resourceVersion: string },
  required: readonly NodeTaint[],
): readonly JsonPatchStep[] {
  // Without a list of taints there is nothing to compare with.
  if (read.taints.length === 0) {
    return [
      { op: 'test', path: '/metadata/resourceVersion', value: read.resourceVersion },
      { op: 'add', path: '/spec/taints', value: required },
    ];
  }
  return [
    { op: 'test', path: '/spec/taints', value: read.taints },
    { op: 'replace', path: '/spec/taints', value: required },
  ];
}
