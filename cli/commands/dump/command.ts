import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { DUMP_OPTIONS, LIST_OPTIONS } from './arguments.ts';

const NEEDS = 'root to look into Pods, into another namespace and into the journal; the rest needs none';

const GROUPS = `It is grouped by whose it is: each ENI, the node as a whole, Pods, the kernel, and all others. What is
ours is known by its protocol, 84, which is shown as tke-eni. Works without agent and cluster; the names of Pods and ENIs
come from the agent's journal, without it there are container ids and interfaces.`;

const FORMATS = `JSON and YAML have the names and values of ip -j (see docs/cli.md for the few differences). The format ip is
a shell script with ip -batch lines that makes the same again; tke-eni dump has all parts in one.`;

/** `tke-eni routes` */
export const ROUTES = defineCommand({
  name: 'routes',
  summary: 'list routes of all tables by whose they are',
  description: `Lists the routes of both families and all tables.

${GROUPS}

${FORMATS}`,
  positionals: NO_ARGUMENTS,
  options: LIST_OPTIONS,
  examples: [
    { line: 'tke-eni routes', does: 'lists what is not made by the kernel itself' },
    { line: 'tke-eni routes --pod default/web-0', does: 'lists its routes on the node and inside of it' },
    { line: 'tke-eni routes --table tke-pods -o json', does: 'prints the routes to Pods as ip -j would' },
  ],
  needs: NEEDS,
  load: async () => (await import('./print-list.ts')).listBody('routes'),
});

/** `tke-eni rules` */
export const RULES = defineCommand({
  name: 'rules',
  summary: 'list policy rules by whose they are',
  description: `Lists the policy rules of both families in their order.

${GROUPS}

${FORMATS}`,
  positionals: NO_ARGUMENTS,
  options: LIST_OPTIONS,
  examples: [
    { line: 'tke-eni rules', does: 'lists all rules' },
    { line: 'tke-eni rules --eni eni-abc', does: 'lists those that lead to this ENI' },
  ],
  needs: NEEDS,
  load: async () => (await import('./print-list.ts')).listBody('rules'),
});

/** `tke-eni links` */
export const LINKS = defineCommand({
  name: 'links',
  summary: 'list network interfaces by whose they are',
  description: `Lists interfaces, with --table those that routes of the table lead out of.

${GROUPS}

${FORMATS}`,
  positionals: NO_ARGUMENTS,
  options: LIST_OPTIONS,
  examples: [
    { line: 'tke-eni links', does: 'lists all interfaces' },
    { line: 'tke-eni links -o json -d', does: 'prints them as ip -j -d link would' },
  ],
  needs: NEEDS,
  load: async () => (await import('./print-list.ts')).listBody('links'),
});

/** `tke-eni addrs` */
export const ADDRS = defineCommand({
  name: 'addrs',
  summary: 'list addresses of interfaces by whose they are',
  description: `Lists addresses, with --table those of interfaces that routes of the table lead out of.

${GROUPS}

${FORMATS}`,
  positionals: NO_ARGUMENTS,
  options: LIST_OPTIONS,
  examples: [{ line: 'tke-eni addrs --pod 10.0.1.5', does: 'lists the addresses inside the Pod that has this one' }],
  needs: NEEDS,
  load: async () => (await import('./print-list.ts')).listBody('addrs'),
});

/** `tke-eni neigh` */
export const NEIGH = defineCommand({
  name: 'neigh',
  summary: 'list neighbours (ARP, NDP) by whose they are',
  description: `Lists neighbours, with --table those on interfaces that routes of the table lead out of.

${GROUPS}

${FORMATS}`,
  positionals: NO_ARGUMENTS,
  options: LIST_OPTIONS,
  examples: [{ line: 'tke-eni neigh --eni eth1', does: 'lists the neighbours learned at this ENI' }],
  needs: NEEDS,
  load: async () => (await import('./print-list.ts')).listBody('neigh'),
});

/** `tke-eni dump` */
export const DUMP = defineCommand({
  name: 'dump',
  summary: 'print links, addresses, routes, neighbours, rules and nftables as one script',
  description: `Prints a shell script that makes in an empty network namespace what the node, or with --pod one Pod, holds:
ip -batch lines of both families, then nft -f. What the kernel makes by itself is left out: its local table, connected
routes, default rules, link-local addresses. Traffic filters, those of the fast path too, are comments: a script cannot
load their programs.

An ENI or the other end of a veth cannot be made by a script: with --stand-ins each interface becomes a veth pair of the
same name and address, so that the state can be tried and looked at anywhere.`,
  positionals: NO_ARGUMENTS,
  options: DUMP_OPTIONS,
  examples: [
    { line: 'tke-eni dump > node.sh', does: 'keeps the state of the node' },
    {
      line: 'ip netns add lab && tke-eni dump --stand-ins | ip netns exec lab sh',
      does: 'makes a copy of the node to try things in',
    },
    { line: 'tke-eni dump -o json', does: 'prints all parts as one JSON document' },
  ],
  needs: NEEDS,
  load: () => import('./run-dump.ts'),
});
