import type { PodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { paint } from '../../output/color.ts';
import { wrapText } from '../../output/render-text.ts';
import type { ClusterLayout } from './render-nodes.ts';

/** The blocks of podCIDRs, as the view of nodes shows them. */
type PodCidrView = Pick<PodCidrRecord, 'clusterCidrs' | 'maskSize' | 'blocks' | 'waiting' | 'stopped'>;

/** Returns the part of a record that the view of nodes shows, in the form of `-o json`. */
export function viewOfPodCidrs({ clusterCidrs, maskSize, blocks, waiting, stopped }: PodCidrRecord): PodCidrView {
  return { clusterCidrs, maskSize, blocks, waiting, stopped };
}

/** Tells whether Nodes get no podCIDR: none is left, or ipamd has stopped. */
export function isPodCidrProblem({ blocks, waiting, stopped }: PodCidrView): boolean {
  return stopped !== '' || (waiting.count > 0 && blocks.free === 0);
}

/** Renders the blocks of podCIDRs in a line, and what is wrong with them in another. */
export function renderPodCidrs(view: PodCidrView, { width, isColored }: ClusterLayout): string {
  const { clusterCidrs, maskSize, blocks, waiting, stopped } = view;
  const { used, held, free, reserved } = blocks;
  const range = `podCIDRs: /${maskSize} of ${clusterCidrs.join(', ')}`;
  const line = `${range}: ${used} used, ${held} held, ${free} free, ${reserved} of Services and subnets`;
  const more = waiting.count > waiting.nodes.length ? ', …' : '';
  const nodes = `${waiting.count} node${waiting.count === 1 ? '' : 's'}`;
  const problems = [
    ...(waiting.count === 0 ? [] : [`${nodes} without a podCIDR: ${waiting.nodes.join(', ')}${more}`]),
    ...(stopped === '' ? [] : [`no podCIDR is given: ${stopped}`]),
  ];
  const color = isPodCidrProblem(view) ? 'red' : 'yellow';
  const lines = wrapText(plainText(line), width);
  const texts = problems.flatMap((text) => wrapText(plainText(text), width));
  return [...lines, ...texts.map((text) => paint(text, color, isColored))].map((text) => `${text}\n`).join('');
}
