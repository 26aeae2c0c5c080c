import { ENI_IP_TAINT } from '../../crd/names.ts';
import type { NodeTaint } from './node-entry.ts';

/**
 * Decides the taints of a VPC-CNI node: without ours once its agent serves addresses, with it before, where `putsOn` says
 * so. The same of exclusive ENIs with `ours` their taint. Undefined: they are as they should be. All others stay as they are, in their order. Pure.
 */
export function decideTaints(
  taints: readonly NodeTaint[],
  isServing: boolean,
  putsOn: boolean,
  ours: NodeTaint = ENI_IP_TAINT,
): readonly NodeTaint[] | undefined {
  // Of any value: people write it without.
  const isOurs = ({ key, effect }: NodeTaint) => key === ours.key && effect === ours.effect;
  const hasOurs = taints.some(isOurs);
  if (isServing) return hasOurs ? taints.filter((taint) => !isOurs(taint)) : undefined;
  return putsOn && !hasOurs ? [...taints, ours] : undefined;
}

/** One step of a JSON patch. @see RFC 6902 */
export type JsonPatchStep = { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown };

/**
 * Makes the patch from what was read to what is wanted. It fails when somebody changed a taint meanwhile; heartbeats do
 * not disturb it. A strategic patch merges taints by key alone, and would take one of another effect with it. Pure.
 */
export function taintPatch(
  read: { readonly taints: readonly NodeTaint[]; readonly resourceVersion: string },
  wanted: readonly NodeTaint[],
): readonly JsonPatchStep[] {
  // There is nothing to compare where there was no list.
  if (read.taints.length === 0) {
    return [
      { op: 'test', path: '/metadata/resourceVersion', value: read.resourceVersion },
      { op: 'add', path: '/spec/taints', value: wanted },
    ];
  }
  return [
    { op: 'test', path: '/spec/taints', value: read.taints },
    { op: 'replace', path: '/spec/taints', value: wanted },
  ];
}
