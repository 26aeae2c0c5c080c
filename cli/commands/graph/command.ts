import { defineCommand } from '../../command/command.ts';
import { OPTIONS, POSITIONALS } from './arguments.ts';

/** `tke-eni graph` */
export const GRAPH = defineCommand({
  name: 'graph',
  summary: 'draw this node: Pods, marks, rules, tables, ENIs, the path of a Pod, broken hops in red',
  description: `Draws what a packet of a Pod meets on its way to the VPC, from left to right: Pod and host veth, the nftables mark, routing rules, routing tables, ENIs and NICs, the VPC. A Pod that is named gets its path drawn, out and in. What is broken is red, with cause and cure beside it: from explain for each Pod, and from diff for the node.

html is one page that needs nothing else, no network and no server: pan, zoom, search, fold, and open each Pod with its paths, addresses, rules and routes. svg is a picture that GitHub and GitLab show, too; json is what is drawn, for programs.`,
  positionals: POSITIONALS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni graph --file node.html', does: 'makes a page of the node, to open in a browser or to send' },
    { line: 'tke-eni graph default/web-0 -f web-0.svg', does: 'draws a Pod’s path out and in' },
    { line: 'tke-eni graph 10.0.1.5 --to 10.0.9.9 > path.svg', does: 'draws the path to an address' },
    { line: 'tke-eni graph -o json | jq \'.nodes[] | select(.state == "broken")\'', does: 'lists what is red' },
  ],
  wrongMeans: 'something in the drawing is broken',
  needs: 'root: to read the journal and nftables, and to look into Pods; what cannot be read is named in the drawing',
  load: () => import('./run-graph.ts'),
});
