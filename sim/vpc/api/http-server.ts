import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { CredentialBook, type IssuedKey } from './credential-book.ts';
import type { CloudHost, HostAnswer } from './host.ts';
import { answerMetadata, type MetadataSettings } from './metadata.ts';
import { ApiError } from './model/api-error.ts';
import { productOfAction } from './model/cloud-model.ts';
import { parseAuthorization, verifyTc3 } from './tc3.ts';

/** How the HTTP side behaves. */
type ServerSettings = Partial<MetadataSettings> & {
  /** 0 picks a free one. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** ServiceAccount tokens that AssumeRoleWithWebIdentity accepts. */
  readonly webIdentityTokens?: readonly string[];
};

type Product = { readonly name: string; readonly version: string; readonly needsRegion: boolean };

const PRODUCTS: readonly Product[] = [
  { name: 'vpc', version: '2017-03-12', needsRegion: true },
  { name: 'cvm', version: '2017-03-12', needsRegion: true },
  { name: 'clb', version: '2018-03-17', needsRegion: true },
  { name: 'tke', version: '2018-05-25', needsRegion: true },
  { name: 'sts', version: '2018-08-13', needsRegion: true },
  { name: 'ssl', version: '2019-12-05', needsRegion: false },
];
const STS_ACTIONS: readonly string[] = ['AssumeRole', 'AssumeRoleWithWebIdentity'];
const DEFAULT_REGION = 'ap-guangzhou';
const ROLE_KEY_MS = 7_200_000;
const MOST_BODY_BYTES = 10_000_000;

/** A simulated cloud that speaks API 3.0 over HTTP, and each instance's metadata service. Owns its port. */
export class CloudServer {
  readonly host: CloudHost;
  readonly credentials = new CredentialBook();
  #settings: ServerSettings;
  #server: Server;

  constructor(host: CloudHost, settings: ServerSettings = {}) {
    this.host = host;
    this.#settings = settings;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }

  /** Starts listening. */
  async start(): Promise<void> {
    const listening = Promise.withResolvers<void>();
    this.#server.once('error', listening.reject);
    this.#server.listen(this.#settings.port ?? 0, this.#settings.host ?? '127.0.0.1', listening.resolve);
    await listening.promise;
  }

  /** `127.0.0.1:4711`: what a client takes as the endpoint of every product. */
  get endpoint(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the cloud server does not listen');
    const { address: host, port }: AddressInfo = address;
    return `${host}:${port}`;
  }

  /** Where an instance's metadata service answers; ends like the real one. */
  metadataUrl(instanceId: string): string {
    return `http://${this.endpoint}/instances/${instanceId}/latest/meta-data`;
  }

  /** Serves a connection that was accepted elsewhere: at an address in another network namespace. */
  accept(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  /** Breaks every connection and frees the port. */
  async close(): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    this.#server.closeAllConnections();
    await closed.promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://cloud');
    if (request.method === 'GET') {
      await this.#answerMetadata(url.pathname, response);
      return;
    }
    const body = await readBody(request);
    const answer = await this.#answerApi(request, body);
    switch (answer.kind) {
      case 'answer':
        sendJson(response, { Response: answer.response });
        break;
      case 'error': {
        const { code: Code, text: Message, requestId: RequestId } = answer;
        sendJson(response, { Response: { Error: { Code, Message }, RequestId } });
        break;
      }
      case 'http':
        response.writeHead(answer.status, { 'content-type': 'text/html' }).end('<html>gateway</html>');
        break;
      case 'reset':
        response.destroy();
        break;
      case 'hang':
        break;
    }
  }

  async #answerApi(request: IncomingMessage, body: string): Promise<HostAnswer> {
    const header = (name: string): string | undefined => {
      const value = request.headers[name];
      return typeof value === 'string' ? value : undefined;
    };
    const action = header('x-tc-action') ?? '';
    try {
      const product = this.#authorize(request, header, action, body);
      const params = parseBody(body);
      if (product === 'sts') return { kind: 'answer', response: this.#sts(action, params) };
      return await this.host.serve(product, action, params);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return {
        kind: 'error',
        code: error.code,
        text: error.message,
        requestId: 'ffffffff-0000-4000-8000-000000000000',
      };
    }
  }

  /** Checks signature, version and region; returns the product that the API belongs to. */
  #authorize(
    request: IncomingMessage,
    header: (name: string) => string | undefined,
    action: string,
    body: string,
  ): string {
    const name = productOf(action, header('x-tc-version'));
    const product = PRODUCTS.find((candidate) => candidate.name === name);
    if (product === undefined || header('x-tc-version') !== product.version) {
      throw new ApiError('NoSuchVersion', `The version of ${action} is missing or unknown.`);
    }
    if (product.needsRegion && header('x-tc-region') === undefined) {
      throw new ApiError('MissingParameter', 'X-TC-Region is missing.');
    }
    const region = header('x-tc-region');
    if (region !== (this.#settings.region ?? DEFAULT_REGION)) {
      throw new ApiError('UnsupportedRegion', `The region ${region ?? ''} is not supported.`);
    }
    const authorization = header('authorization') ?? '';
    if (action === 'AssumeRoleWithWebIdentity' && authorization === 'SKIP') return name;
    const nowMs = this.host.clock.nowMs();
    const auth = parseAuthorization(authorization);
    const key = this.credentials.find(auth.secretId, header('x-tc-token'), nowMs);
    const headers = Object.fromEntries(auth.signedHeaders.map((one) => [one, header(one)]));
    const signed = { ...headers, 'x-tc-timestamp': header('x-tc-timestamp') };
    verifyTc3({ method: request.method ?? '', headers: signed, body }, auth, key.secretKey, nowMs);
    return name;
  }

  #sts(action: string, params: Readonly<Record<string, unknown>>): object {
    for (const fault of this.host.faults.draw(action, 0))
      if (fault.kind === 'error') throw new ApiError(fault.code, `${action} is refused by a fault.`);
    if (action === 'AssumeRoleWithWebIdentity') {
      const token = String(params['WebIdentityToken'] ?? '');
      if (!(this.#settings.webIdentityTokens ?? []).includes(token)) {
        throw new ApiError('InvalidParameter.WebIdentityTokenError', 'The web identity token is not valid.');
      }
    }
    if (typeof params['RoleArn'] !== 'string') throw new ApiError('MissingParameter', 'RoleArn is missing.');
    const seconds = Number(params['DurationSeconds'] ?? 7_200);
    const key: Required<IssuedKey> = this.credentials.issue(this.host.clock.nowMs(), seconds * 1000);
    return {
      Credentials: { TmpSecretId: key.secretId, TmpSecretKey: key.secretKey, Token: key.token },
      ExpiredTime: Math.floor(key.expiresAtMs / 1000),
      Expiration: new Date(key.expiresAtMs).toISOString(),
      RequestId: 'ffffffff-0000-4000-8000-000000000001',
    };
  }

  async #answerMetadata(path: string, response: ServerResponse): Promise<void> {
    await this.host.catchUp();
    const match = /^\/instances\/([^/]+)\/latest\/meta-data\/(.*)$/.exec(path);
    const { state } = this.host.model;
    const instance = state.instances.get(match?.[1] ?? '');
    const { region = DEFAULT_REGION, roleKeyMs = ROLE_KEY_MS } = this.#settings;
    const answer =
      instance === undefined
        ? undefined
        : answerMetadata(state, this.credentials, { region, roleKeyMs }, instance, match?.[2] ?? '');
    if (answer === undefined) response.writeHead(404).end('404 Not Found');
    else response.writeHead(200, { 'content-type': 'text/plain' }).end(answer);
  }
}

/** The product that a request is for: that of its API, or of its version where no product has the API. */
function productOf(action: string, version: string | undefined): string {
  if (STS_ACTIONS.includes(action)) return 'sts';
  return productOfAction(action) ?? PRODUCTS.find((product) => product.version === version)?.name ?? 'vpc';
}

function parseBody(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body === '' ? '{}' : body);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Falls through: what is no JSON and what is no object get the same answer.
  }
  throw new ApiError('InvalidParameter', 'The body is no JSON object.');
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MOST_BODY_BYTES) throw new Error('request body too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function sendJson(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
