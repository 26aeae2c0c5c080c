import { buildGraph } from '../../../../cli/commands/graph/build-graph.ts';
import type { Graph } from '../../../../cli/commands/graph/graph.ts';
import { DRAWING_SHEET, PAGE_SCRIPT, PAGE_SHEET } from '../../../../cli/commands/graph/page/page-sources.inline.ts';
import { renderHtml } from '../../../../cli/commands/graph/render-html.ts';
import { renderSvg } from '../../../../cli/commands/graph/render-svg.ts';
import type { NodeFacts } from '../../../../inspection/node/node-facts.ts';
import { explanationFixture } from './explanation-fixture.ts';
import { nodeFixture } from './node-fixture.ts';

/** Names that must stay names, wherever they are put: markup, script, quotes, text that turns around. */
export const HOSTILE_NAMES = [
  '<script>window.hacked = 1</script>',
  '</script><img src=x onerror="window.hacked=1">',
  '"]; end; click n0 "javascript:window.hacked=1',
  '`**bold**` $(window.hacked=1) {{window.hacked}}',
  'line\n  a --> b\r\n%% comment',
  "' or \" onload='window.hacked=1",
  '#quot;#35; {curly} (round) |pipe| <br/>',
  ']]></style><style>*{display:none}',
  '1. list - item [[x]]',
  '\u202etxet\u2066 \u0007\u0000\ud800',
] as const;

/** A node of 2 ENIs and 8 Pods whose first ENI lacks the rule of its mark: 4 Pods are broken. */
export function brokenNode(): NodeFacts {
  const facts = nodeFixture({ enis: 2, podsPerEni: 4 });
  const rules = facts.host.rules.filter(({ priority, fwmark }) => priority !== 1536 || fwmark !== 0x10000);
  return { ...facts, host: { ...facts.host, rules } };
}

/** Draws a made-up node with a path of each Pod; Pods whose ENI has no rule for its mark are broken. */
export function drawingOf(facts: NodeFacts): Graph {
  const hasRule = (table: number | undefined) =>
    facts.host.rules.some((rule) => rule.priority === 1536 && rule.table === table);
  const explanations = facts.pods.map((pod) => {
    const group = facts.host.links.find(({ ifindex }) => ifindex === pod.hostIfindex)?.group;
    return explanationFixture(facts, pod, !hasRule(group));
  });
  return buildGraph(facts, { explanations, findings: [] });
}

/** Renders the page of a made-up node. */
export function pageOf(facts: NodeFacts): string {
  return renderHtml(drawingOf(facts), undefined, {
    script: PAGE_SCRIPT,
    pageSheet: PAGE_SHEET,
    drawingSheet: DRAWING_SHEET,
  });
}

/** Renders the picture of a made-up node, with the paths of its first Pod. */
export function svgOf(facts: NodeFacts): string {
  const graph = drawingOf(facts);
  return renderSvg(graph, graph.paths.slice(0, 2), DRAWING_SHEET);
}
