import { fileURLToPath } from 'node:url';
import { startTimer } from '../../../runtime/clock.ts';
import type { Child } from '../../support/child.ts';
import type { NetnsView } from '../../support/netns.ts';

/** What a peer is asked to do. */
export type PeerOrder =
  | { readonly do: 'listen'; readonly port: number; readonly protocol?: 'tcp' | 'udp' | 'http' }
  /** Stops listening, and ends what was connected. */
  | { readonly do: 'silence'; readonly port: number }
  /** Addresses that connected to a port. */
  | { readonly do: 'clients'; readonly port: number }
  /** Paths that were asked of its server of HTTP. */
  | { readonly do: 'http-asked' }
  /** So many connections, one after the other. */
  | { readonly do: 'ask'; readonly host: string; readonly port: number; readonly count: number }
  /** So many connections, 20 at once; each is used again after a while. Answers what was heard then. */
  | { readonly do: 'talk'; readonly host: string; readonly port: number; readonly count: number }
  | { readonly do: 'ask-udp'; readonly host: string; readonly port: number; readonly count: number }
  /** A connection that stays open. */
  | { readonly do: 'open'; readonly id: string; readonly host: string; readonly port: number }
  | { readonly do: 'say'; readonly id: string; readonly text: string };

const ANSWER_MS = 20_000;

/** A process in a namespace that serves and asks; a server answers with its name and the address of its client. */
export class Peer {
  readonly #child: Child;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #rest = '';
  #orders = 0;

  constructor(netns: NetnsView, name: string) {
    const script = fileURLToPath(new URL('peer-process.ts', import.meta.url));
    this.#child = netns.start([process.execPath, script, name], { onStdout: (text) => this.#read(text) });
  }

  /** Texts that the order results in. @throws Error when the process does not answer */
  async texts(order: PeerOrder): Promise<readonly string[]> {
    const result = await this.#obey(order);
    return (Array.isArray(result) ? result : [result]).map(String);
  }

  /** The one text that the order results in. */
  async text(order: PeerOrder): Promise<string> {
    return (await this.texts(order)).join(' ');
  }

  /** Ends the process. Idempotent. */
  async close(): Promise<void> {
    await this.#child.stop('SIGKILL');
  }

  #obey(order: PeerOrder): Promise<unknown> {
    this.#orders += 1;
    const number = this.#orders;
    return new Promise((resolve, reject) => {
      const timer = startTimer(() => reject(new Error(`no answer to ${order.do}: ${this.#child.stderr}`)), ANSWER_MS);
      this.#waiting.set(number, (result) => {
        timer.cancel();
        resolve(result);
      });
      this.#child.writeLine(JSON.stringify({ order: number, ...order }));
    });
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const { order, result } = JSON.parse(line) as { readonly order: number; readonly result: unknown };
      this.#waiting.get(order)?.(result);
      this.#waiting.delete(order);
    }
  }
}
