import type { BatchItem, BatchOutcome, NewLink } from './batch.ts';
import type { ByteWriter } from './byte-writer.ts';
import type { RequestContext } from './channel.ts';
import type { Conn, ReadRequest } from './conn.ts';
import { encodeRequest, messageCodecOf, operationName } from './encode-request.ts';
import { LINK, type LinkMessage, type LinkRef, type LinkSpec } from './link-message.ts';
import { linkMessageOfRef } from './link-request.ts';
import { renderRequest } from './render-request.ts';
import type { Query, Request } from './request.ts';
import { RTEXT_FILTER_SKIP_STATS } from './uapi/if-link.ts';
import { RTM_GETLINK, RTM_NEWLINK } from './uapi/rtnetlink.ts';

/** Prepares a request for a batch. */
export function batchItem(request: Request): BatchItem {
  return new RequestItem(request);
}

/** One small object per request: this path is used for every single change. */
class RequestItem implements BatchItem {
  readonly #request: Request;

  constructor(request: Request) {
    this.#request = request;
  }

  get codec(): BatchItem['codec'] {
    return messageCodecOf(this.#request.object);
  }

  encode(writer: ByteWriter, seq: number, extraFlags: number): void {
    encodeRequest(writer, this.#request, seq, extraFlags);
  }

  fail(): ReturnType<RequestContext['fail']> {
    const request = this.#request;
    return { op: operationName(request.object, request.verb), request: renderRequest(request) };
  }
}

/** Executes requests in order; see `Rtnetlink.execute`. @throws NetlinkError when the exchange itself fails */
export function executeAll(conn: Conn, requests: readonly Request[]): BatchOutcome[] {
  const outcomes = conn.execute(requests.map(batchItem));
  for (let index = 0; index < requests.length; index++) {
    const request = requests[index];
    const outcome = outcomes[index];
    if (request?.object === 'link' && request.verb === 'add' && outcome?.kind === 'ok') {
      outcomes[index] = finishNewLink(conn, request.spec, outcome);
    }
  }
  return outcomes;
}

/** Executes one request, other than a new link. @throws NetlinkError */
export function change(conn: Conn, request: Request): void {
  conn.change(new RequestItem(request));
}

/** Makes a link. @returns its ifindex, 0 when it is unknown. @throws NetlinkError */
export function addLink(conn: Conn, spec: LinkSpec): NewLink {
  const outcome = executeAll(conn, [{ object: 'link', verb: 'add', spec }])[0];
  if (outcome?.kind === 'error') {
    throw outcome.error;
  }
  const { ifindex = 0, peerIfindex } = outcome ?? {};
  return peerIfindex === undefined ? { ifindex } : { ifindex, peerIfindex };
}

/** Finds the ifindex when the kernel did not echo it, and sets the alias, which the kernel ignores on a new link. */
function finishNewLink(conn: Conn, spec: LinkSpec, outcome: BatchOutcome & { kind: 'ok' }): BatchOutcome {
  const ifindex = outcome.ifindex ?? spec.ifindex ?? (spec.netns === undefined ? findIfindex(conn, spec.ifname) : 0);
  if (spec.ifalias !== undefined) {
    const request: Request = { object: 'link', verb: 'set', spec: { ifindex, ifalias: spec.ifalias } };
    const aliased = conn.execute([batchItem(request)])[0];
    if (aliased?.kind === 'error') {
      return aliased;
    }
  }
  return { ...outcome, ifindex };
}

function findIfindex(conn: Conn, ifname: string): number {
  return conn.get(linkReadRequest({ ifname })).ifindex;
}

/** Builds the request for one link, without its statistics. */
export function linkReadRequest(ref: LinkRef): ReadRequest<LinkMessage> {
  return {
    type: RTM_GETLINK,
    answerType: RTM_NEWLINK,
    codec: LINK,
    body: { ...linkMessageOfRef(ref), extMask: RTEXT_FILTER_SKIP_STATS },
    fail: failureOf({ object: 'link', verb: 'get', spec: ref }),
  };
}

/** Renders a request for errors; the line is rendered only on demand. */
export function failureOf(request: Request | Query): RequestContext['fail'] {
  return () => ({ op: operationName(request.object, request.verb), request: renderRequest(request) });
}
