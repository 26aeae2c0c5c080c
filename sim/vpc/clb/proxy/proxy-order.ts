import type { ProxyTable } from '../../api/model/clb/proxy-table.ts';

/** What the proxy is told in one line. */
export type ProxyOrder = {
  /** Rises from 1; its answer has the same. */
  readonly order: number;
  /** Absent: that of the order before. */
  readonly table?: ProxyTable;
  /** By rule, `ip:port` of the targets that get requests. */
  readonly usable: Readonly<Record<string, readonly string[]>>;
};

/** What the proxy answers in one line: `error` when nothing has changed. Order 0 says that it runs. */
export type ProxyAnswer = { readonly order: number; readonly error?: string };
