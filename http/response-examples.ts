/** Answers of a small cell, by operation: written by test/http/interface-document.test.ts. */
export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = {
  listRuns: {
    runs: [
      {
        id: "019c13ec-c510-7002-8000-000000000002",
        program_id: "019c13ec-a1e8-7001-8000-000000000001",
        program_name: "Housing top",
        status: "completed",
        progress: {
          total_steps: 2,
          completed_steps: 2,
          current_step: null,
        },
        serial_number: "SN-0042",
        revision: 1,
        metadata: {
          lot: "A7",
        },
        started_at: "2026-01-31T12:00:10.000000Z",
        completed_at: "2026-01-31T12:00:16.000000Z",
        error_message: null,
        created_at: "2026-01-31T12:00:10.000000Z",
        updated_at: "2026-01-31T12:00:16.000000Z",
        links: {
          self: {
            href: "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002",
            method: "GET",
          },
          program: {
            href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
            method: "GET",
          },
          cancel: null,
          websocket: null,
        },
      },
    ],
    total: 1,
    limit: 1,
    offset: 0,
  },
  getActiveRun: {
    active: false,
    run: null,
  },
  getRun: {
    id: "019c13ec-c510-7002-8000-000000000002",
    program_id: "019c13ec-a1e8-7001-8000-000000000001",
    status: "completed",
    trace_id: null,
    serial_number: "SN-0042",
    revision: 1,
    metadata: {
      lot: "A7",
    },
    progress: {
      total_steps: 2,
      completed_steps: 2,
      current_step: null,
    },
    steps: {
      completed: [
        {
          index: 1,
          type: "move_robot",
          name: "approach",
          status: "completed",
          started_at: "2026-01-31T12:00:11.000000Z",
          completed_at: "2026-01-31T12:00:12.000000Z",
          result: null,
          error: null,
        },
        {
          index: 2,
          type: "capture_frame",
          name: "top face",
          status: "completed",
          started_at: "2026-01-31T12:00:12.000000Z",
          completed_at: "2026-01-31T12:00:14.000000Z",
          result: {
            frame_id: "019c13ec-cce0-7003-8000-000000000003",
            checks: [
              {
                name: "flatness",
                status: "passed",
                value: 0.12,
                nominal: 0,
                delta: 0.12,
                threshold: 0.2,
              },
            ],
            defects: [
              {
                id: "d1",
                type: "scratch",
                confidence: 0.82,
                severity: "low",
              },
            ],
          },
          error: null,
        },
      ],
      in_progress: null,
      pending: [],
    },
    started_at: "2026-01-31T12:00:10.000000Z",
    completed_at: "2026-01-31T12:00:16.000000Z",
    error_message: null,
    results: {
      frame_ids: ["019c13ec-cce0-7003-8000-000000000003"],
    },
    event_log: [],
    webhook_deliveries: [],
    webhook_delivery: {
      delivered: 0,
      failed: 0,
      pending: 0,
      all_ok: true,
    },
    files: [
      {
        name: "frame-019c13ec-cce0-7003-8000-000000000003.npy",
        type: "array",
        content_type: "application/octet-stream",
        size_in_bytes: 140,
        description: null,
        href: "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002/files/frame-019c13ec-cce0-7003-8000-000000000003.npy",
        step_index: 2,
        frame_id: "019c13ec-cce0-7003-8000-000000000003",
        created_at: "2026-01-31T12:00:14.000000Z",
        updated_at: "2026-01-31T12:00:14.000000Z",
        deleted_at: null,
      },
    ],
    created_at: "2026-01-31T12:00:10.000000Z",
    updated_at: "2026-01-31T12:00:16.000000Z",
    links: {
      self: {
        href: "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002",
        method: "GET",
      },
      program: {
        href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
        method: "GET",
      },
      cancel: null,
      websocket: null,
    },
  },
  listProgramRuns: {
    runs: [
      {
        id: "019c13ec-c510-7002-8000-000000000002",
        program_id: "019c13ec-a1e8-7001-8000-000000000001",
        program_name: "Housing top",
        status: "completed",
        progress: {
          total_steps: 2,
          completed_steps: 2,
          current_step: null,
        },
        serial_number: "SN-0042",
        revision: 1,
        metadata: {
          lot: "A7",
        },
        started_at: "2026-01-31T12:00:10.000000Z",
        completed_at: "2026-01-31T12:00:16.000000Z",
        error_message: null,
        created_at: "2026-01-31T12:00:10.000000Z",
        updated_at: "2026-01-31T12:00:16.000000Z",
        links: {
          self: {
            href: "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002",
            method: "GET",
          },
          program: {
            href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
            method: "GET",
          },
          cancel: null,
          websocket: null,
        },
      },
    ],
    total: 1,
    limit: 1,
    offset: 0,
  },
  listPrograms: {
    programs: [
      {
        id: "019c13ec-a1e8-7001-8000-000000000001",
        name: "Housing top",
        description: "Flatness of the top face",
        robot_ids: ["r1"],
        sensor_id: "ljx-1",
        status: "active",
        steps: [
          {
            type: "move_robot",
            name: "approach",
          },
          {
            type: "capture_frame",
            name: "top face",
            params: {
              exposure_us: 40,
            },
          },
        ],
        metadata: {
          line: 4,
        },
        run_count: 1,
        created_at: "2026-01-31T12:00:01.000000Z",
        updated_at: "2026-01-31T12:00:01.000000Z",
        links: {
          self: {
            href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
            method: "GET",
          },
          runs: {
            href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001/runs",
            method: "GET",
          },
        },
      },
    ],
    total: 1,
    limit: 1,
    offset: 0,
  },
  getProgram: {
    id: "019c13ec-a1e8-7001-8000-000000000001",
    name: "Housing top",
    description: "Flatness of the top face",
    robot_ids: ["r1"],
    sensor_id: "ljx-1",
    status: "active",
    steps: [
      {
        type: "move_robot",
        name: "approach",
      },
      {
        type: "capture_frame",
        name: "top face",
        params: {
          exposure_us: 40,
        },
      },
    ],
    metadata: {
      line: 4,
    },
    run_count: 1,
    created_at: "2026-01-31T12:00:01.000000Z",
    updated_at: "2026-01-31T12:00:01.000000Z",
    links: {
      self: {
        href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001",
        method: "GET",
      },
      runs: {
        href: "http://cell.factory:8000/programs/019c13ec-a1e8-7001-8000-000000000001/runs",
        method: "GET",
      },
    },
  },
  getQualityReport: {
    run_id: "019c13ec-c510-7002-8000-000000000002",
    quality_report: {
      status: "passed",
      checks: [
        {
          name: "flatness",
          status: "passed",
          value: 0.12,
          nominal: 0,
          delta: 0.12,
          threshold: 0.2,
          canonical_units: "mm",
        },
      ],
      defects: [
        {
          id: "d1",
          type: "scratch",
          confidence: 0.82,
          severity: "low",
        },
      ],
      summary: "1 of 1 checks passed",
    },
  },
  getDefects: {
    run_id: "019c13ec-c510-7002-8000-000000000002",
    defects: [
      {
        id: "d1",
        type: "scratch",
        confidence: 0.82,
        severity: "low",
      },
    ],
  },
  listRunFiles: [
    {
      name: "frame-019c13ec-cce0-7003-8000-000000000003.npy",
      type: "array",
      content_type: "application/octet-stream",
      size_in_bytes: 140,
      description: null,
      href: "http://cell.factory:8000/runs/019c13ec-c510-7002-8000-000000000002/files/frame-019c13ec-cce0-7003-8000-000000000003.npy",
      step_index: 2,
      frame_id: "019c13ec-cce0-7003-8000-000000000003",
      created_at: "2026-01-31T12:00:14.000000Z",
      updated_at: "2026-01-31T12:00:14.000000Z",
      deleted_at: null,
    },
  ],
  getFrame: {
    id: "019c13ec-cce0-7003-8000-000000000003",
    session_id: "session-1",
    sequence_number: 1,
    frame_type: "heightmap",
    file_path: "/sensor/frames/019c13ec-cce0-7003-8000-000000000003/file.npy",
    file_size_bytes: 140,
    width: 3,
    height: 2,
    joint_positions: [0, 1.5, -2, 0, 0.7, 0],
    tcp_position: null,
    capture_timestamp: "2026-01-31T12:00:12.000000Z",
    metadata: null,
    created_at: "2026-01-31T12:00:12.000000Z",
  },
  listFrameFiles: {
    frame_id: "019c13ec-cce0-7003-8000-000000000003",
    session_id: "session-1",
    available_formats: ["npy"],
    files: {
      npy: {
        href: "http://cell.factory:8000/sensor/frames/019c13ec-cce0-7003-8000-000000000003/file.npy",
        content_type: "application/octet-stream",
        size_in_bytes: 140,
      },
    },
  },
  getHealth: {
    status: "healthy",
    components: {
      log: {
        status: "healthy",
        id: null,
        detail: null,
        enabled: null,
      },
      recorder: {
        status: "healthy",
        id: null,
        detail: null,
        enabled: null,
      },
    },
  },
  getVersion: {
    "service-version": "1.2.3-test",
  },
  getLiveness: {
    status: "alive",
  },
};
