import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import type { IssuedKey } from '../../sim/vpc/api/credential-book.ts';
import { executablePath } from '../support/executables.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { Door } from './door.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Where ipamd serves its metrics and health, in its own namespace. */
export const IPAMD_PORT = 61_681;

/** How one replica of ipamd is started. */
type IpamdOptions = {
  readonly name: string;
  /** A namespace of its own, with nothing but a loopback. */
  readonly room: NetnsView;
  /** Folder of its files. */
  readonly dir: string;
  readonly kube: Door;
  readonly cloud: Door;
  readonly kubeconfig: string;
  readonly key: IssuedKey;
  readonly program: 'packaged' | 'sources';
  /** They win over the defaults. */
  readonly flags?: Readonly<Record<string, string>>;
};

/** One replica of ipamd. */
export class IpamdProcess {
  readonly name: string;
  readonly kube: Door;
  readonly cloud: Door;
  #options: IpamdOptions;
  #child: Child | undefined;
  #earlier = '';
  #flagsNow: Readonly<Record<string, string>> = {};

  constructor(options: IpamdOptions) {
    this.name = options.name;
    this.kube = options.kube;
    this.cloud = options.cloud;
    this.#options = options;
    mkdirSync(options.dir, { recursive: true });
    this.writeKey(options.key);
  }

  /** Starts it, or starts it again; with flags that win over the others from now on. */
  start(flags: Readonly<Record<string, string>> = {}): void {
    this.#flagsNow = { ...this.#flagsNow, ...flags };
    const { room, program } = this.#options;
    if (this.#child !== undefined) this.#earlier += this.#child.stdout + this.#child.stderr;
    const command =
      program === 'packaged' ? [executablePath('tke-eni-ipamd')] : [process.execPath, join(ROOT, 'ipamd', 'main.ts')];
    this.#child = room.start([...command, ...this.#flags()], {
      // Audits expect a claim of each Pod. By the variable: an ipamd of 0.1.0 refuses the flag.
      env: { ...childEnv(), POD_NAME: this.name, TKE_ENI_POD_RECORDS: 'all' },
    });
  }

  /** Replaces the key that it signs with. */
  writeKey({ secretId, secretKey }: IssuedKey): void {
    writeFileSync(this.#keyFile, JSON.stringify({ secretId, secretKey }));
  }

  /** True from its start to its end. */
  get isRunning(): boolean {
    return this.#child?.isRunning === true;
  }

  /** What is in the lock while this replica leads. */
  get identity(): string {
    return this.name;
  }

  /** Process id, 0 before the first start. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Ends it without a chance to tidy up. */
  async kill(): Promise<void> {
    await this.#child?.stop('SIGKILL');
  }

  /** Ends it as Kubernetes does. */
  async stop(): Promise<void> {
    await this.#child?.stop('SIGTERM', 15_000);
  }

  /** All that it ever wrote: its log. */
  logs(): string {
    return `${this.#earlier}${this.#child?.stdout ?? ''}${this.#child?.stderr ?? ''}`;
  }

  /** Waits until its health address answers 200 at a path. @throws Error with the end of its log */
  async awaitHttp(path: string, timeoutMs = 60_000): Promise<string> {
    return waitUntil(() => this.http(path), {
      what: `${this.name} ${path}`,
      timeoutMs,
      everyMs: 300,
      explain: () => this.logs().slice(-3_000),
    });
  }

  /** Reads a path of its health address; undefined unless it answers 200 in time. */
  async http(path: string): Promise<string | undefined> {
    const url = `http://127.0.0.1:${IPAMD_PORT}${path}`;
    const script = `const r = await fetch('${url}'); process.stdout.write(await r.text()); if (!r.ok) process.exit(1)`;
    const argv = [process.execPath, '--input-type=module', '-e', script];
    // A busy machine takes seconds to start Node: whoever waits for an answer asks again.
    const answer = await this.#options.room.tryRun(argv, { timeoutMs: 10_000 }).catch(() => undefined);
    return answer?.code === 0 ? answer.stdout : undefined;
  }

  get #keyFile(): string {
    return join(this.#options.dir, 'key.json');
  }

  #flags(): readonly string[] {
    const { cloud, kubeconfig, flags } = this.#options;
    const all: Readonly<Record<string, string>> = {
      clusterid: 'cls-system00',
      region: 'ap-guangzhou',
      endpoint: cloud.address,
      protocol: 'http',
      credentials: 'file',
      'credentials-file': this.#keyFile,
      kubeconfig,
      'cloud-timeout': '5s',
      'leader-elect-lease': '5s',
      'leader-elect-renew': '1s',
      'leader-elect-retry': '200ms',
      'metrics-address': `127.0.0.1:${IPAMD_PORT}`,
      'log-level': 'debug',
      ...flags,
      ...this.#flagsNow,
    };
    return Object.entries(all).map(([name, value]) => `--${name}=${value}`);
  }
}
