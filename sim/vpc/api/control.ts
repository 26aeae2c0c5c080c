import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FaultRule } from './faults.ts';
import type { CloudServer } from './http-server.ts';
import type { InstanceSpec } from './model/state.ts';

/** Where a cloud that runs as a program takes orders. */
type CloudControl = { readonly url: string; close(): Promise<void> };

type Order = (body: Readonly<Record<string, unknown>>) => unknown;

/**
 * Takes orders over HTTP, one JSON object each way: POST /fault (a FaultRule), /clear-faults, /add-instance (an
 * InstanceSpec), /remove-instance {instanceId}, /add-key {secretId, secretKey}, /revoke-key {secretId}, /counts,
 * /forget, /summary. The caller closes it.
 */
export async function startCloudControl(cloud: CloudServer, address: string): Promise<CloudControl> {
  const orders = ordersFor(cloud);
  const server = createServer((request, response) => {
    answer(orders, request).then(
      (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {})),
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, resolve);
  });
  // A TCP server has an address with a port.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function ordersFor({ host, credentials }: CloudServer): Readonly<Record<string, Order>> {
  const { state } = host.model;
  // The body of a POST is what its sender says: whoever starts this program gives it orders.
  return {
    '/fault': (body) => void host.faults.add(body as unknown as FaultRule),
    '/clear-faults': () => host.faults.clear(),
    '/add-instance': (body) => ({ instanceId: state.addInstance(body as unknown as InstanceSpec).instanceId }),
    '/remove-instance': ({ instanceId }) => state.removeInstance(String(instanceId)),
    '/add-key': ({ secretId, secretKey }) => void credentials.add(String(secretId), String(secretKey)),
    '/revoke-key': ({ secretId }) => credentials.revoke(String(secretId)),
    '/counts': () => host.counts(),
    '/forget': () => host.forget(),
    '/summary': async () => {
      await host.catchUp();
      const enis = [...state.enis.values()].filter((eni) => !eni.isPrimary);
      const ips = enis.reduce((sum, eni) => sum + eni.ips.size - 1, 0);
      return { enis: enis.length, ips, instances: state.instances.size, requests: host.seen.length };
    },
  };
}

async function answer(orders: Readonly<Record<string, Order>>, request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const order = orders[request.url ?? ''];
  if (order === undefined) throw new Error(`no such order: ${request.url}`);
  const text = Buffer.concat(chunks).toString('utf8');
  const body: unknown = text === '' ? {} : JSON.parse(text);
  if (typeof body !== 'object' || body === null) throw new Error('the body is no JSON object');
  return order({ ...body });
}
