import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import type { CommandContext } from '../../command/command.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { Graph } from '../graph/graph.ts';
import { DRAWING_SHEET, PAGE_SCRIPT, PAGE_SHEET } from '../graph/page/page-sources.inline.ts';
import { readGraphInput } from '../graph/read-graph-input.ts';
import { renderHtml } from '../graph/render-html.ts';
import { type BundlePart, PART_BYTES } from './bundle-part.ts';
import { redactValue } from './redact-value.ts';

/** Limit of Pods on a page. A drawing of more takes long to make and is unreadable; the tables contain all Pods. */
const MAX_PODS = 500;

/**
 * Returns the part with the node drawn as a page, as `tke-eni graph` does. Secrets are removed from the graph before it
 * is drawn: shortening or changing the finished page would break it.
 */
export function graphPart(context: Pick<CommandContext, 'global'>): BundlePart {
  return {
    path: 'graph.html',
    collect: async () => {
      const { pods } = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
      if (pods.length > MAX_PODS) {
        return {
          kind: 'skipped',
          why: `${pods.length} Pods are too many for a page here: tke-eni graph --file draws it`,
        };
      }
      const input = await readGraphInput(context, { subject: undefined, to: undefined });
      const page = renderHtml(redactValue(buildGraph(input.facts, input)) as Graph, undefined, {
        script: PAGE_SCRIPT,
        pageSheet: PAGE_SHEET,
        drawingSheet: DRAWING_SHEET,
      });
      if (Buffer.byteLength(page) > PART_BYTES) {
        return { kind: 'skipped', why: `the page has more than ${PART_BYTES} bytes: tke-eni graph --file writes it` };
      }
      return { kind: 'safe', text: page };
    },
  };
}
