import { ENI_IP_TAINT } from '../../crd/names.ts';
import type { NodeTaint } from './node-entry.ts';

/**
 * Decides the taints of a VPC-CNI node: without ours once its agent serves addresses, with it before, where `putsOn` says
 * so. Undefined: they are as they should be. All others stay as they are, in their order. Pure.
 */
export function decideTaints(
  taints: readonly NodeTaint[],
  isServing: boolean,
  putsOn: boolean,
): readonly NodeTaint[] | undefined {
  const hasOurs = taints.some(isOurs);
  if (isServing) return hasOurs ? taints.filter((taint) => !isOurs(taint)) : undefined;
  return putsOn && !hasOurs ? [...taints, ENI_IP_TAINT] : undefined;
}

/** Of any value: people write it without. */
function isOurs(taint: NodeTaint): boolean {
  return taint.key === ENI_IP_TAINT.key && taint.effect === ENI_IP_TAINT.effect;
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
