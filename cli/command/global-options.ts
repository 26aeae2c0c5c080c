import type { OptionTable } from './command.ts';

/** Options of every command, given before or after it. The declarations of the commands do not contain them. */
export const GLOBAL_OPTIONS = {
  'state-dir': {
    type: 'string',
    summary: "agent's state folder: journal and node file",
    metavar: 'DIR',
    default: '/run/tke-eni',
    completes: 'folder',
  },
  socket: {
    type: 'string',
    summary: "agent's socket",
    metavar: 'FILE',
    default: '/run/tke-eni/agent.sock',
    completes: 'file',
  },
  'agent-timeout': {
    type: 'number',
    summary: 'time that the agent has to answer where the journal answers else',
    metavar: 'SECONDS',
    default: 0.2,
  },
  netns: {
    type: 'string',
    summary: "network namespace that stands for the node's: a name in /run/netns or a path",
    metavar: 'NETNS',
    completes: 'netns',
  },
  'host-root': {
    type: 'string',
    summary: "root of the host's file system; by default /proc/1/root where that is another one than /, else /",
    metavar: 'DIR',
    completes: 'folder',
  },
  kubeconfig: {
    type: 'string',
    summary: 'how to reach the API server; by default $KUBECONFIG, ~/.kube/config or the Pod that this runs in',
    metavar: 'FILE',
    completes: 'file',
  },
  color: {
    type: 'string',
    summary: 'colours; auto: on a terminal, without NO_COLOR and TERM=dumb',
    choices: ['auto', 'always', 'never'],
    default: 'auto',
  },
  help: { type: 'boolean', alias: 'h', summary: 'print help, of the command if one is given' },
  version: { type: 'boolean', alias: 'V', summary: 'print the release' },
} as const satisfies OptionTable;
