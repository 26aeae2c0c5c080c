import type { ArgsOf, NO_ARGUMENTS } from '../../command/command.ts';

/** Options of `doctor`. */
export const OPTIONS = {
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print; wide has every check with what it saw',
    choices: ['table', 'wide', 'json', 'yaml'],
    default: 'table',
  },
  only: { type: 'strings', summary: 'only these checks or findings, separated by commas', metavar: 'ID' },
  skip: { type: 'strings', summary: 'all but these checks or findings', metavar: 'ID' },
  'cni-conf-dir': {
    type: 'string',
    summary: 'folder of CNI configuration on the host',
    metavar: 'DIR',
    default: '/etc/cni/net.d',
    completes: 'folder',
  },
  'cni-bin-dir': {
    type: 'string',
    summary: 'folder of CNI executables on the host',
    metavar: 'DIR',
    default: '/opt/cni/bin',
    completes: 'folder',
  },
} as const;

/** Arguments of `doctor`. */
export type DoctorArgs = ArgsOf<typeof OPTIONS, typeof NO_ARGUMENTS>;
