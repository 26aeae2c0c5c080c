import type { CallObserver } from '../cloud/tencent/caller.ts';
import type { KeyFailure } from '../cloud/tencent/credentials/credential.ts';
import type { ProblemRegistry } from './problem-registry.ts';

/** A refusal of the cloud that concerns all callers: its kind, its name in the metric, and what to do about it. */
type CloudRefusal = {
  readonly kind: 'Forbidden' | 'ConfigInvalid' | 'CredentialsRefused' | 'CredentialsMissing';
  readonly name: string;
  readonly message: string;
};

/** Called when the cloud begins to refuse something for good, not with each call. */
export type CloudRefusalListener = (refusal: CloudRefusal) => void;

const NOT_GRANTED: readonly string[] = ['UnauthorizedOperation', 'AuthFailure.UnauthorizedOperation'];
const UNSUPPORTED_REGION = 'UnsupportedRegion';

/**
 * Tracks which calls the cloud forbids, from the results of their attempts: a missing right of the role, a key that is
 * not accepted, a wrong region; and whether there is a key at all. Each caller reports it for its own node; here it is reported once for all.
 */
export class CloudRights implements CallObserver {
  readonly #problems: ProblemRegistry;
  /** The name of this program in messages. */
  readonly #program: string;
  readonly #refused = new Map<string, CloudRefusal>();
  #listener: CloudRefusalListener = () => {};

  constructor(problems: ProblemRegistry, program: string) {
    this.#program = program;
    this.#problems = problems;
  }

  /** Sets who hears of refusals, those before included. */
  set listener(listener: CloudRefusalListener) {
    this.#listener = listener;
    for (const refusal of this.#refused.values()) listener(refusal);
  }

  onKeyFailure(kind: KeyFailure, text: string): void {
    const what = kind === 'CredentialsMissing' ? 'has no key to the cloud' : 'may not assume its role in the cloud';
    this.#note({ kind, name: KEY, message: `${this.#program} ${what}: ${text}` });
  }

  onAttempt({ action, code }: Pick<Parameters<CallObserver['onAttempt']>[0], 'action' | 'code'>): void {
    if (code === undefined) this.#granted(action);
    const refusal = code === undefined ? undefined : refusalOf(this.#program, action, code);
    if (refusal !== undefined) this.#note(refusal);
  }

  #note(refusal: CloudRefusal): void {
    if (this.#refused.get(refusal.name)?.kind === refusal.kind) return;
    this.#refused.set(refusal.name, refusal);
    this.#problems.report(reporterOf(refusal.name), [refusal]);
    this.#listener(refusal);
  }

  /** Ends the refusals that a successful call disproves: key and region are good, and this call is granted. */
  #granted(action: string): void {
    if (this.#refused.size === 0) return;
    for (const name of [action, ...OF_ALL_CALLS]) {
      if (this.#refused.delete(name)) this.#problems.report(reporterOf(name), []);
    }
  }
}

const KEY = 'key';
const REGION = 'region';
const OF_ALL_CALLS = [KEY, REGION] as const;

function reporterOf(name: string): string {
  return `cloud-right/${name}`;
}

/** Classifies an error code that no waiting resolves; undefined for others. */
function refusalOf(program: string, action: string, code: string): CloudRefusal | undefined {
  const detail = `${action} was answered ${code}`;
  if (NOT_GRANTED.includes(code)) {
    const message = `${program} may not ${action} in the cloud: ${detail}; grant the action to the role or user of the key`;
    return { kind: 'Forbidden', name: action, message };
  }
  if (code === UNSUPPORTED_REGION) {
    const message = `the cloud knows no such region: ${detail}; set --region to the region of the VPC, such as ap-guangzhou`;
    return { kind: 'ConfigInvalid', name: REGION, message };
  }
  if (!code.startsWith('AuthFailure')) return undefined;
  const message = `the cloud does not accept the key: ${detail}; check --credentials, and this machine's clock`;
  return { kind: 'CredentialsRefused', name: KEY, message };
}
