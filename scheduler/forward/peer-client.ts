import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { ByteCollector, collectStream } from '../../runtime/byte-collector.ts';
import { FORWARDED_HEADER, fingerprintOf } from '../../runtime/client-admission.ts';
import { startTimer } from '../../runtime/clock.ts';
import type { TlsPair } from '../../runtime/tls-follower.ts';

/** The answer of another replica. */
export type PeerAnswer = { readonly status: number; readonly text: string };

/** Longest answer, bytes: one that names 10,000 nodes has a megabyte. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** How long an idle connection stays open, milliseconds. */
const IDLE_MS = 30_000;
/** Time limit of TCP and TLS together, milliseconds. */
const CONNECT_MS = 2_000;
const MAX_CONNECTIONS = 64;

/**
 * Sends requests to other replicas. Both sides present the certificate that kube-scheduler is served with, and accept
 * this very certificate only: whoever has its key is the extender.
 */
export class PeerClient {
  readonly #agents = new Map<string, Agent>();
  readonly #pairs: () => readonly TlsPair[];

  /** @param pairs certificates in use: the present one, and the one before, which another replica may still have */
  constructor(pairs: () => readonly TlsPair[]) {
    this.#pairs = pairs;
  }

  /**
   * Posts a request to a replica.
   * @param attempt the number of the attempt: selects the certificate
   * @throws Error when there is no answer, or the other side has another certificate
   */
  async post(address: string, verb: string, body: string, attempt: number, signal: AbortSignal): Promise<PeerAnswer> {
    const agent = this.#agentFor(attempt);
    const url = `https://${address}/${verb}`;
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      [FORWARDED_HEADER]: '1',
    };
    return await new Promise((resolve, reject) => {
      const sent = request(url, { method: 'POST', agent, headers, signal }, (response) => {
        readText(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
      });
      sent.once('socket', (socket) => {
        if (!socket.connecting) return;
        // The host may be gone: then nothing at all comes back.
        const timer = startTimer(() => sent.destroy(new Error(`no connection within ${CONNECT_MS} ms`)), CONNECT_MS);
        for (const event of ['secureConnect', 'close']) socket.once(event, () => timer.cancel());
      });
      sent.once('error', reject);
      sent.end(body);
    });
  }

  /** Closes all connections. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  #agentFor(attempt: number): Agent {
    const pairs = this.#pairs();
    const pair = pairs[attempt % pairs.length];
    if (pair === undefined) throw new Error('there is no certificate');
    const id = pairs.map(({ cert }) => fingerprintOf(cert)).join();
    const key = `${fingerprintOf(pair.cert)} of ${id}`;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    // With another certificate the connections of the former ones are of no use.
    for (const [other, agent] of this.#agents) {
      if (other.endsWith(` of ${id}`)) continue;
      agent.destroy();
      this.#agents.delete(other);
    }
    const accepted = new Set(pairs.map(({ cert }) => fingerprintOf(cert)));
    const agent = new Agent({
      ...{ keepAlive: true, timeout: IDLE_MS, maxSockets: MAX_CONNECTIONS },
      ...{ cert: pair.cert, key: pair.key, minVersion: pair.minVersion },
      // The certificate itself is the trust anchor, whoever has signed it.
      ...{ ca: pairs.map(({ cert }) => cert), allowPartialTrustChain: true },
      checkServerIdentity: (_host, { fingerprint256 }) =>
        accepted.has(fingerprint256) ? undefined : new Error('the other replica has another certificate'),
    });
    this.#agents.set(key, agent);
    return agent;
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const answer = new ByteCollector(MAX_ANSWER_BYTES);
  const why = await collectStream(response, answer);
  if (why === undefined) return answer.take().toString('utf8');
  response.destroy();
  throw new Error(`the answer has more than ${MAX_ANSWER_BYTES} bytes, or too many pieces`);
}
