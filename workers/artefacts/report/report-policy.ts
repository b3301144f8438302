/** The Content-Security-Policy of the page. It may load nothing, also where it was saved or sent to. */
export const REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
