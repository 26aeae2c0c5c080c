import { plainText } from '../../../runtime/plain-text.ts';
import { paint } from '../../output/color.ts';
import { wrapText } from '../../output/render-text.ts';
import type { RouteView } from './find-network-problems.ts';
import type { ClusterLayout } from './render-nodes.ts';

/** Renders in a line how many nodes have their route of the VPC, and in another which do not. */
export function renderRoutes(view: RouteView, { width, isColored }: ClusterLayout): string {
  const { routed, missing, missingCount, unknown } = view;
  const unwritten = unknown === 0 ? '' : `, ${unknown} of which no controller of routes tells`;
  const line = `routes of the VPC to podCIDRs: ${routed} nodes have theirs, ${missingCount} have none${unwritten}`;
  const more = missingCount > missing.length ? ', …' : '';
  const names = missing.length === 0 ? [] : wrapText(plainText(`without a route: ${missing.join(', ')}${more}`), width);
  return [...wrapText(line, width), ...names.map((text) => paint(text, 'red', isColored))]
    .map((text) => `${text}\n`)
    .join('');
}
