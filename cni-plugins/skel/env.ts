import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { ConfigError, Faults } from '../../runtime/decode.ts';
import { INTERFACE_NAME_RULE, isInterfaceName } from '../../runtime/interface-name.ts';
import { CniError } from './error.ts';
import { COMMANDS, type Command } from './version.ts';

/**
 * Decodes the CNI_* environment.
 *
 * @throws CniError code 4 that names every faulty variable.
 * @see https://www.cni.dev/docs/spec/#parameters
 */
export function decodeEnv(env: Environment): CniEnv {
  const faults = new Faults();
  const command = COMMANDS.find((candidate) => candidate === env['CNI_COMMAND']);
  if (command === undefined) faults.add('CNI_COMMAND', `one of ${COMMANDS.join(', ')}`, env['CNI_COMMAND']);
  const decoded = { containerId: '', netns: '', ifName: '', args: '' };
  for (const { name, field, required, optional, expected, isValid } of VARIABLES) {
    if (command === undefined || !(required.includes(command) || optional.includes(command))) continue;
    // An empty variable counts as unset: runtimes do both on DEL.
    const value = env[name] ?? '';
    if (value === '') {
      if (required.includes(command)) faults.add(name, `${expected}, as ${command} requires`, undefined);
    } else if (isValid(value)) {
      decoded[field] = value;
    } else {
      faults.add(name, expected, value);
    }
  }
  if (command === undefined || faults.list.length > 0) {
    throw new CniError(
      CNI_CODE.invalidEnvironment,
      new ConfigError('environment', faults.list).message,
      'the container runtime sets these variables; to call by hand, see the CNI specification, "Parameters"',
    );
  }
  return { command, ...decoded, args: decodeArgs(decoded.args) };
}

/** The values of the runtime's environment; a variable that the command does not use is empty. */
export type CniEnv = {
  readonly command: Command;
  readonly containerId: string;
  readonly netns: string;
  readonly ifName: string;
  readonly args: CniArgs;
};

/** The known keys of CNI_ARGS. Empty when the runtime is not that of Kubernetes. */
type CniArgs = { readonly podNamespace: string; readonly podName: string; readonly podUid: string };

/** An environment: `process.env` or that of a test. */
export type Environment = { readonly [name: string]: string | undefined };

type Variable = {
  readonly name: string;
  readonly field: 'containerId' | 'netns' | 'ifName' | 'args';
  readonly required: readonly Command[];
  readonly optional: readonly Command[];
  readonly expected: string;
  readonly isValid: (value: string) => boolean;
};

/** The variables that are used. CNI_PATH is read where another plugin is called (`plugin-calls.ts`). */
const VARIABLES: readonly Variable[] = [
  {
    name: 'CNI_CONTAINERID',
    field: 'containerId',
    required: ['ADD', 'DEL', 'CHECK'],
    optional: [],
    expected: 'a letter or digit, then letters, digits, "_", "." or "-"',
    isValid: (value) => /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(value),
  },
  {
    name: 'CNI_NETNS',
    field: 'netns',
    required: ['ADD', 'CHECK'],
    // Empty on DEL when the namespace no longer exists.
    optional: ['DEL'],
    expected: 'the absolute path of a network namespace',
    isValid: (value) => value.startsWith('/'),
  },
  {
    name: 'CNI_IFNAME',
    field: 'ifName',
    required: ['ADD', 'DEL', 'CHECK'],
    optional: [],
    expected: INTERFACE_NAME_RULE,
    isValid: isInterfaceName,
  },
  {
    name: 'CNI_ARGS',
    field: 'args',
    required: [],
    optional: ['ADD', 'DEL', 'CHECK'],
    expected: 'KEY=VALUE pairs separated by ";"',
    isValid: (value) => pairsOf(value).every((pair) => pair.indexOf('=') > 0),
  },
];

function decodeArgs(args: string): CniArgs {
  // Unknown keys are ignored with and without IgnoreUnknown: the set of keys depends on the runtime's release.
  const entries = pairsOf(args).map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  const values = new Map(entries);
  return {
    podNamespace: values.get('K8S_POD_NAMESPACE') ?? '',
    podName: values.get('K8S_POD_NAME') ?? '',
    podUid: values.get('K8S_POD_UID') ?? '',
  };
}

function pairsOf(args: string): readonly string[] {
  return args.split(';').filter((pair) => pair !== '');
}
