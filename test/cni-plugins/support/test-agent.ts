import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { AGENT_SERVICE, type AgentMethod, type ReplyInitOf, type RequestOf } from '../../../agent/api/service.ts';

/** Answers one call of the agent's contract. */
type Answer<M extends AgentMethod> = (request: RequestOf<M>) => ReplyInitOf<M> | Promise<ReplyInitOf<M>>;

/** Is what a test agent answers, call by call; a missing one is UNIMPLEMENTED, as in an agent of another release. */
export type Answers = { readonly [M in AgentMethod]?: Answer<M> };

/** Serves answers with grpc-js on an address; the codec is ours, the protocol is not. */
export async function serve(address: string, answers: Answers): Promise<{ readonly port: number; close(): void }> {
  const server = new Server();
  const methods = Object.keys(AGENT_SERVICE) as AgentMethod[];
  const served = methods.filter((method) => answers[method] !== undefined);
  const implementation: UntypedServiceImplementation = {};
  for (const method of served) {
    implementation[method] = (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => {
      const answer = answers[method] as (request: unknown) => unknown;
      void (async () => answer(call.request))().then(
        (reply) => callback(null, reply),
        (error: Error) => callback({ code: 13, details: error.message }),
      );
    };
  }
  server.addService(Object.fromEntries(served.map((method) => [method, AGENT_SERVICE[method]])), implementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, close: () => server.forceShutdown() };
}

/** Makes a folder for one test's socket and spool; the path is short, for `sun_path` is. */
export function makeFolder(): { readonly path: string; readonly socket: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tke-test-'));
  return { path, socket: join(path, 'agent.sock'), remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Is an agent that keeps leases and wires nothing. */
type FakeAgent = { readonly answers: Required<Answers>; readonly leases: Map<string, Lease> };

/** Is what the fake agent holds for one attachment. */
type Lease = { readonly address: string; readonly plugin: number; readonly netns: string };

/** Makes a fake agent; `addressOf` names the n-th address, with prefix length, and its gateway. */
export function createFakeAgent(
  addressOf: (n: number) => { readonly address: string; readonly gateway: string },
  routes: readonly { readonly dst: string; readonly gw?: string }[] = [{ dst: '0.0.0.0/0' }],
): FakeAgent {
  const leases = new Map<string, Lease>();
  let next = 0;
  const keyOf = (sandbox: { readonly containerId: string; readonly ifName: string } | undefined) =>
    `${sandbox?.containerId} ${sandbox?.ifName}`;
  const attachmentOf = (request: RequestOf<'add'> | RequestOf<'check'>, lease: Lease) => {
    const isIpam = request.plugin === 2;
    const { ifName = '', netns = '' } = request.sandbox ?? {};
    const { gateway } = addressOf(0);
    return {
      interfaces: isIpam
        ? []
        : [
            { name: 'eni0123456789a', mac: '02:00:00:00:00:01', mtu: 1500 },
            { name: ifName, mac: '02:00:00:00:00:02', mtu: 1500, sandbox: netns },
          ],
      ips: [{ address: lease.address, gateway, interfaceIndex: isIpam ? -1 : 1, eniId: 'eni-1' }],
      routes,
    };
  };
  const answers: Required<Answers> = {
    add: (request) => {
      const key = keyOf(request.sandbox);
      const lease = leases.get(key) ?? {
        address: addressOf(next++).address,
        plugin: request.plugin,
        netns: request.sandbox?.netns ?? '',
      };
      leases.set(key, lease);
      return { attachment: attachmentOf(request, lease), agentVersion: 'fake' };
    },
    del: (request) => {
      leases.delete(keyOf(request.sandbox));
      return { agentVersion: 'fake' };
    },
    check: (request) => {
      const lease = leases.get(keyOf(request.sandbox));
      if (lease === undefined) return { differences: [`no lease for ${keyOf(request.sandbox)}`] };
      return { attachment: attachmentOf(request, lease) };
    },
    status: () => ({}),
    gc: (request) => {
      const valid = new Set(request.validAttachments.map(keyOf));
      const gone = [...leases.keys()].filter((key) => !valid.has(key));
      for (const key of gone) leases.delete(key);
      return { released: gone.length };
    },
  };
  return { answers, leases };
}
